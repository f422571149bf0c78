/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * dl_iterate_phdr() with forks kept away.
 */
#include "collector/runtime/libraries.h"

#include "collector/runtime/compat.h"
#include "collector/runtime/fork_guard.h"

int libraries__each(int (*fn)(struct dl_phdr_info *info, size_t bytes, void *arg), void *arg)
{
	int result;

	fork_guard__hold();
	result = dl_iterate_phdr(fn, arg);
	fork_guard__release();
	return result;
}
