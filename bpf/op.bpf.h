/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What happens at the entry and exit of an op of any kind.
 */
#ifndef GP_BPF_OP_BPF_H
#define GP_BPF_OP_BPF_H

#include "stack.bpf.h"
#include "thread.bpf.h"

/* Pushes an open op. Returns the low half of its instance; 0: it was too deep. */
static __always_inline __u32 op_push(struct thread_state *t, __u64 sp, __u32 tag, __u32 name_id,
				     __u64 now, __u32 stack_id)
{
	struct thread_frame *frame = thread_frame(t, t->depth);
	struct counters *c;

	if (!frame) {
		if (sp > t->over_sp)
			t->over_sp = sp;
		return 0;
	}
	/* Ops that were too deep lay in the op that had this frame before, so they have been left.
	 */
	t->over_sp = 0;
	frame->sp = sp;
	frame->start_ns = now;
	frame->tag = tag;
	frame->name_id = name_id;
	frame->op = ++t->next_op;
	frame->stack_id = stack_id;
	t->depth++;
	c = counters_get();
	if (c)
		__sync_fetch_and_add(&c->opened, 1);
	return frame->op;
}

static __always_inline __u32 op_open(struct op_site *site, __u32 name_id)
{
	__u32 stack_id = 0, op;

	if (gp_stacks) {
		stack_id = stack_id_walked(site->ctx, site->thread, site->now);
		/* The walk does not count as time of the op. */
		site->now = bpf_ktime_get_ns();
	}
	op = op_push(site->thread, site->sp, COOKIE_TAG(site->cookie), name_id, site->now,
		     stack_id);
	if (!op)
		count_loss(GP_LOSS_DEPTH);
	return op;
}

/* No open op matches this exit. If none is open, the op was open before the capture began. */
static __noinline void op_unmatched(struct thread_state *t)
{
	count_loss(t->depth ? GP_LOSS_RECORD : GP_LOSS_OPEN_AT_START);
}

/* At an exit. False if nothing is recorded, or the op was too deep for a frame. */
static __always_inline bool op_end_begin(struct pt_regs *ctx, struct op_site *site)
{
	struct thread_state *t;

	if (!op_site_at(ctx, site))
		return 0;
	t = site->thread;
	if (site->sp <= t->over_sp)
		return 0;
	thread_settle(t, site->sp, site->now);
	t->over_sp = 0;
	return 1;
}

static long close_range_one(__u32 n, struct close_dead *c)
{
	const struct thread_frame *frame = thread_top(c->thread);

	if (!frame || TAG_SCOPE(frame->tag) != GP_SCOPE_USER)
		return loop_end();
	count_loss(GP_LOSS_EXCEPTION);
	thread_close_top(c->thread, c->now, GP_OP_EXCEPTION);
	return 0;
}

/* Closes the ranges above the innermost op, which is about to end. Out of line because it is rare.
 */
static __noinline void thread_close_ranges(struct thread_state *t, __u64 now)
{
	struct close_dead c = {.thread = t, .now = now};

	(void)bpf_loop(GP_OP_DEPTH, close_range_one, &c, 0);
}

/* Closes the op that ends here. False if it is not open. */
static __always_inline bool op_close(struct op_site *site)
{
	struct thread_state *t = site->thread;
	const struct thread_frame *frame = thread_top(t);

	if (frame && TAG_SCOPE(frame->tag) == GP_SCOPE_USER) {
		thread_close_ranges(t, site->now);
		frame = thread_top(t);
	}
	if (!frame || frame->tag != COOKIE_TAG(site->cookie)) {
		op_unmatched(t);
		return 0;
	}
	thread_close_top(t, site->now, 0);
	return 1;
}

#endif /* GP_BPF_OP_BPF_H */
