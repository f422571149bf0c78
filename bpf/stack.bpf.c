/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The current thread's stack, for the programs of probes.
 */
#include "stack_walk.bpf.h"

/* Whether the collector has noted the current thread's stack; its id, or 0 if there is no Python.
 * Out of line: up to Linux 6.12 all functions on the way to a walk share 512 bytes of stack. */
static __noinline bool python_emitted(const struct thread_state *t, __u64 sp, __u32 *ret_id)
{
	__u32 process = (__u16)t->owner;
	__u64 self = bpf_get_current_task_btf()->thread.fsbase, first, frame;
	__u64 table = gp_stack_tops[process & (GP_PROCESSES_MAX - 1)];
	const struct gp_python *py;
	struct gp_stack_top top;

	if (!table)
		return false;
	py = bpf_map_lookup_elem(&pythons, &process);
	table += gp_stack_top_place(self) * sizeof(top);
	if (!py || !walked_read(&top, offsetof(struct gp_stack_top, pad), table) ||
	    top.self != self || !top.state || top.record <= sp)
		return false;
	if (!walked_read(&first, 8, py->interpreters) || first != top.interp ||
	    !walked_read(&frame, 8, top.state + py->state_frame) || !python_innermost(py, &frame) ||
	    frame != top.frame)
		return false;
	*ret_id = top.stack_id ? top.stack_id | GP_STACK_EMITTED : 0;
	return true;
}

__noinline __u32 stack_emitted_or_walked(const struct thread_state *t, __u64 ip, __u64 sp, __u64 bp,
					 __u64 now)
{
	__u32 id;

	if (!t)
		return 0;
	if (gp_stacks == GP_STACK_WANT_PYTHON && python_emitted(t, sp, &id))
		return id;
	return stack_walked(t, ip, sp, bp, now);
}
