/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Operators and autograd nodes: one program at entries, one at exits. Both probe instructions
 * inside the function, never its return address (an exception that crosses a return probe kills
 * the target). Each runs millions of times a second: every line here is paid by the target.
 */
#include "python.bpf.h"
#include "thread.bpf.h"

#include <bpf/bpf_tracing.h>

char gp_license[] SEC("license") = "Dual BSD/GPL";

static __always_inline void op_open(struct thread_state *t, __u64 sp, __u32 tag, __u32 name_id,
				    __u64 now, __u32 stack_id)
{
	__u32 depth = t->depth;
	struct thread_frame *frame;
	struct counters *c;

	if (depth >= GP_OP_DEPTH) {
		if (sp > t->over_sp)
			t->over_sp = sp;
		count_loss(GP_LOSS_DEPTH);
		return;
	}
	frame = &t->frames[depth];
	frame->sp = sp;
	frame->start_ns = now;
	frame->tag = tag;
	frame->name_id = name_id;
	frame->op = ++t->next_op;
	frame->stack_id = stack_id;
	t->depth = depth + 1;
	c = counters_get();
	if (c)
		__sync_fetch_and_add(&c->opened, 1);
}

SEC("uprobe")
int gp_op_entry(struct pt_regs *ctx)
{
	__u32 epoch = gp_epoch;
	struct thread_state *t;
	__u64 cookie, now, sp;
	__u32 stack_id = 0;

	if (!epoch)
		return 0;
	cookie = bpf_get_attach_cookie(ctx);
	now = bpf_ktime_get_ns();
	t = thread_get(epoch, cookie, now);
	if (!t)
		return 0;
	sp = PT_REGS_SP(ctx) + COOKIE_SP_DELTA(cookie);
	/* An open op at the very same place has been left too: this frame lies on its. */
	thread_settle(t, sp + 1, now);
	if (gp_stacks) {
		stack_id = python_stack(t, now);
		/* The walk is no part of the op. */
		now = bpf_ktime_get_ns();
	}
	op_open(t, sp, COOKIE_TAG(cookie), COOKIE_NAME(cookie), now, stack_id);
	return 0;
}

/* The name of an autograd node's class by its virtual table; `otherwise` if that is not known. */
static __always_inline __u32 node_name(__u64 node, __u64 cookie, __u32 otherwise)
{
	struct node_table key = {.process = COOKIE_PROCESS(cookie)};
	const __u32 *name_id;

	if (bpf_probe_read_user(&key.address, sizeof(key.address), (const void *)node))
		return otherwise;
	name_id = bpf_map_lookup_elem(&node_names, &key);
	return name_id ? *name_id : otherwise;
}

/* void torch::autograd::Engine::evaluate_function(std::shared_ptr<GraphTask> &, Node *, ...); its
 * exits are an op's. */
SEC("uprobe")
int gp_node_entry(struct pt_regs *ctx)
{
	__u32 epoch = gp_epoch, name_id, stack_id = 0;
	struct thread_state *t;
	__u64 cookie, now, sp;

	if (!epoch)
		return 0;
	cookie = bpf_get_attach_cookie(ctx);
	now = bpf_ktime_get_ns();
	t = thread_get(epoch, cookie, now);
	if (!t)
		return 0;
	sp = PT_REGS_SP(ctx) + COOKIE_SP_DELTA(cookie);
	thread_settle(t, sp + 1, now);
	name_id = node_name(PT_REGS_PARM3(ctx), cookie, COOKIE_NAME(cookie));
	if (gp_stacks) {
		stack_id = python_stack(t, now);
		now = bpf_ktime_get_ns();
	}
	op_open(t, sp, COOKIE_TAG(cookie), name_id, now, stack_id);
	return 0;
}

/*
 * void *__cxa_begin_catch(void *): an exception has been caught. What lies below the frame that
 * caught it has been left, and this is when. Without this the ops would stay open until an event
 * on the thread comes from further up the stack than they were.
 */
SEC("uprobe")
int gp_catch(struct pt_regs *ctx)
{
	__u32 epoch = gp_epoch;
	struct thread_state *t;
	__u64 cookie;

	if (!epoch)
		return 0;
	cookie = bpf_get_attach_cookie(ctx);
	t = thread_find();
	if (!t || t->owner != ((__u64)epoch << 16 | COOKIE_PROCESS(cookie)))
		return 0;
	thread_settle(t, PT_REGS_SP(ctx) + COOKIE_SP_DELTA(cookie) + 1, bpf_ktime_get_ns());
	return 0;
}

/* No open op fits this exit. If nothing is open it was open already when the capture began. */
static __noinline void op_unmatched(struct thread_state *t)
{
	count_loss(t->depth ? GP_LOSS_RECORD : GP_LOSS_OPEN_AT_START);
}

SEC("uprobe")
int gp_op_exit(struct pt_regs *ctx)
{
	__u32 epoch = gp_epoch, i;
	struct thread_state *t;
	__u64 cookie, now, sp;

	if (!epoch)
		return 0;
	cookie = bpf_get_attach_cookie(ctx);
	now = bpf_ktime_get_ns();
	t = thread_get(epoch, cookie, now);
	if (!t)
		return 0;
	sp = PT_REGS_SP(ctx);
	/* The exit of an op that was too deep to be kept. */
	if (sp <= t->over_sp)
		return 0;
	thread_settle(t, sp, now);
	t->over_sp = 0;
	i = t->depth - 1;
	if (i < GP_OP_DEPTH && t->frames[i].tag == COOKIE_TAG(cookie))
		thread_close_top(t, now, 0);
	else
		op_unmatched(t);
	return 0;
}
