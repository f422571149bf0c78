/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The current thread's stack at a probe, see stack.bpf.c. `sp` and the others are the registers at
 * the probe. The walks are global functions: the verifier checks them once per program, and not on
 * each path that leads to them.
 */
#ifndef GP_BPF_STACK_BPF_H
#define GP_BPF_STACK_BPF_H

#include "maps.bpf.h"

/* Returns the stack's id for an op that is about to be opened; 0 if there is none, or (counted) it
 * cannot be read. */
extern __u32 stack_walked(const struct thread_state *t, __u64 ip, __u64 sp, __u64 bp, __u64 now);

/* Does so for any other event, which may use the stack that the collector noted for an op. */
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
