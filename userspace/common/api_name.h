/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Names of CUDA API functions as CUPTI spells them.
 */
#ifndef GP_COMMON_API_NAME_H
#define GP_COMMON_API_NAME_H

#include <stddef.h>

/* The length of "cudaLaunchKernel" in "cudaLaunchKernel_v7000": CUPTI appends the CUDA version that
 * introduced a function, as four digits or more. Fewer digits are part of the name, as in
 * "cuMemcpyHtoDAsync_v2". `bytes` is the length of `name`, which need not end with a NUL. */
static inline size_t api_name_without_version(const char *name, size_t bytes)
{
	size_t at = bytes;

	while (at && name[at - 1] >= '0' && name[at - 1] <= '9')
		at--;
	if (bytes - at >= 4 && at > 2 && name[at - 1] == 'v' && name[at - 2] == '_')
		return at - 2;
	return bytes;
}

#endif /* GP_COMMON_API_NAME_H */
