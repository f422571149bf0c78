/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The stand-in for libnvToolsExt.so.1. Without a tool behind it, it only counts.
 */
#include "fake/fake_gpu.h"

FAKE_GPU_PUBLIC int nvtxRangePushA(const char *text);
FAKE_GPU_PUBLIC int nvtxRangePop(void);

static __thread int depth;

int nvtxRangePushA(const char *text)
{
	return text ? depth++ : -1;
}

int nvtxRangePop(void)
{
	return depth ? --depth : -1;
}
