/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The stack of the current thread, for the programs of probes.
 */
#include "stack_walk.bpf.h"

__noinline __u32 stack_told_or_walked(const struct thread_state *t, __u64 ip, __u64 sp, __u64 bp,
				      __u64 now)
{
	__u32 id;

	if (!t)
		return 0;
	if (gp_stacks == GP_STACK_WANT_PYTHON && python_told(t, sp, &id))
		return id;
	return stack_walked(t, ip, sp, bp, now);
}
