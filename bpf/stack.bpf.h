/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The stack of the current thread at a probe, see stack.bpf.c. `sp` and the others are those at the
 * probe. The walks are functions of their own, not static: so the verifier looks at them once in
 * each program, and not along each path that leads to them.
 */
#ifndef GP_BPF_STACK_BPF_H
#define GP_BPF_STACK_BPF_H

#include "maps.bpf.h"

/* Id of the stack, for what opens an op; 0 if there is none, or (counted) none can be had. */
extern __u32 stack_walked(const struct thread_state *t, __u64 ip, __u64 sp, __u64 bp, __u64 now);

/* The same for all else, whose stack may be that of an op which the collector has told of. */
extern __u32 stack_emitted_or_walked(const struct thread_state *t, __u64 ip, __u64 sp, __u64 bp,
				     __u64 now);

static __always_inline __u32 stack_id_walked(struct pt_regs *ctx, const struct thread_state *t,
					     __u64 now)
{
	return stack_walked(t, ctx->ip, ctx->sp, ctx->bp, now);
}

static __always_inline __u32 stack_id_now(struct pt_regs *ctx, const struct thread_state *t,
					  __u64 now)
{
	return stack_emitted_or_walked(t, ctx->ip, ctx->sp, ctx->bp, now);
}

#endif /* GP_BPF_STACK_BPF_H */
