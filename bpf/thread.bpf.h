/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The current thread's stack of open ops: finds it, opens and closes ops, and drops those that an
 * exception has left. Nothing here runs while gp_epoch is 0.
 */
#ifndef GP_BPF_THREAD_BPF_H
#define GP_BPF_THREAD_BPF_H

#include "emit.bpf.h"

#include <bpf/bpf_tracing.h>

/* A cookie: name id and scope (the tag), distance to the stack pointer at entry, whether the file
 * uses old strings, whether the instruction is single-stepped, process. */
#define COOKIE_TAG(cookie)	   ((__u32)(cookie))
#define COOKIE_NAME(cookie)	   ((__u32)(cookie)&0xffffff)
#define COOKIE_SP_DELTA(cookie)	   ((__u32)((cookie) >> 32) & 0x3fff)
#define COOKIE_OLD_STRINGS(cookie) ((cookie)&1ULL << 46)
#define COOKIE_STEPPED(cookie)	   ((cookie)&1ULL << 47)
#define COOKIE_PROCESS(cookie)	   ((__u16)((cookie) >> 48))
#define TAG_SCOPE(tag)		   ((tag) >> 24)

static __noinline void count_stepped(void)
{
	struct counters *c = counters_get();

	if (c)
		__sync_fetch_and_add(&c->stepped_hits, 1);
}

static __always_inline struct thread_state *thread_find(void)
{
	__u32 tid;

	if (gp_task_storage)
		return bpf_task_storage_get(&threads, bpf_get_current_task_btf(), 0, 0);
	tid = (__u32)bpf_get_current_pid_tgid();
	return bpf_map_lookup_elem(&threads_by_tid, &tid);
}

/* Resets the state for this capture and emits the thread. */
static __noinline void thread_begin(struct thread_state *t, __u64 owner, __u64 now)
{
	struct gp_ev_thread *event;

	if (!t->number)
		t->number = __sync_fetch_and_add(&gp_threads_nr, 1) + 1;
	t->owner = owner;
	t->tid = (__u32)bpf_get_current_pid_tgid();
	t->depth = 0;
	t->over_sp = 0;
	t->nvtx_sp = 0;
	t->ranges_over = 0;
	t->range_op = 0;
	t->api_depth = 0;
	t->api_over_sp = 0;
	t->gc_start_ns = 0;
	event = emit_reserve(sizeof(*event));
	if (!event)
		return;
	emit_head(&event->head, GP_EV_THREAD, 0, t, now);
	bpf_get_current_comm(event->comm, sizeof(event->comm));
	emit_submit(event, t);
}

/* Returns the current thread's state, or NULL (counted). */
static __always_inline struct thread_state *thread_get(__u32 epoch, __u64 cookie, __u64 now)
{
	__u64 owner = (__u64)epoch << 16 | COOKIE_PROCESS(cookie);
	struct thread_state *t = thread_find();

	if (COOKIE_STEPPED(cookie))
		count_stepped();
	if (!t)
		t = thread_memory(&threads, &threads_by_tid, &no_thread);
	if (!t) {
		count_loss(GP_LOSS_THREAD);
		return 0;
	}
	if (t->owner != owner)
		thread_begin(t, owner, now);
	return t;
}

/* Returns the instance of the innermost of the outermost `depth` open ops; 0: none. */
static __always_inline __u64 thread_instance(const struct thread_state *t, __u32 depth)
{
	const struct thread_frame *frame = thread_frame(t, (__u64)depth - 1);

	return frame && frame->op ? (__u64)t->number << 32 | frame->op : 0;
}

/* Name ids of ops that are not emitted: what happens in them counts for the op around them. They
 * are the operators that begin and end ranges, where ranges are emitted instead or not wanted, and
 * operators that were not chosen. */
#define NAME_RANGE_END 0xffffffffU
#define NAME_UNCHOSEN  0xfffffffeU

static __always_inline bool name_is_emitted(__u32 name_id)
{
	return name_id < NAME_UNCHOSEN;
}

/* Pops the innermost op and emits it. */
static __always_inline void thread_close_top(struct thread_state *t, __u64 now, __u8 flags)
{
	const struct thread_frame *frame = thread_top(t);
	struct counters *c;
	struct gp_ev_op *event;

	if (!frame)
		return;
	t->depth--;
	c = counters_get();
	if (c)
		__sync_fetch_and_add(&c->closed, 1);
	if (!name_is_emitted(frame->name_id))
		return;
	event = emit_reserve(sizeof(*event));
	if (!event)
		return;
	emit_head(&event->head, GP_EV_OP, flags, t, now);
	event->start_ns = frame->start_ns;
	event->instance = (__u64)t->number << 32 | frame->op;
	event->parent = thread_instance(t, t->depth);
	event->sequence_nr = -1;
	event->forward_thread = 0;
	event->name_id = frame->name_id;
	event->stack_id = frame->stack_id;
	event->scope = TAG_SCOPE(frame->tag);
	event->thread_number = 0;
	emit_submit(event, t);
}

static __always_inline bool thread_top_dead(const struct thread_state *t, __u64 sp)
{
	const struct thread_frame *frame = thread_top(t);

	return frame && frame->sp < sp;
}

struct close_dead {
	struct thread_state *thread;
	__u64 sp;
	__u64 now;
};

static long close_dead_one(__u32 n, struct close_dead *c)
{
	const struct thread_frame *frame = thread_top(c->thread);

	if (!frame || frame->sp >= c->sp)
		return loop_end();
	if (name_is_emitted(frame->name_id))
		count_loss(GP_LOSS_EXCEPTION);
	thread_close_top(c->thread, c->now, GP_OP_EXCEPTION);
	return 0;
}

/* Closes the ops whose frames lie below sp: an exception has left them. Out of line because it is
 * rare. */
static __noinline void thread_close_dead(struct thread_state *t, __u64 sp, __u64 now)
{
	struct close_dead c = {.thread = t, .sp = sp, .now = now};

	(void)bpf_loop(GP_OP_DEPTH, close_dead_one, &c, 0);
	t->over_sp = 0;
}

/* Closes the ops that have been left: those whose frames are not above sp. Each program calls it
 * first. */
static __always_inline void thread_settle(struct thread_state *t, __u64 sp, __u64 now)
{
	if (thread_top_dead(t, sp))
		thread_close_dead(t, sp, now);
}

/* A probe hit: what each program needs first. */
struct op_site {
	struct pt_regs *ctx;
	struct thread_state *thread;
	__u64 cookie;
	__u64 sp; /* at an entry: the sp at function entry; at an exit: at the probe */
	__u64 now;
};

/* At any probe; `sp` is the one there. False if nothing is recorded. */
static __always_inline bool op_site_at(struct pt_regs *ctx, struct op_site *site)
{
	__u32 epoch = gp_epoch, process;

	if (!epoch)
		return 0;
	site->ctx = ctx;
	site->cookie = bpf_get_attach_cookie(ctx);
	process = COOKIE_PROCESS(site->cookie);
	if (gp_placing[process >> 6] >> (process & 63) & 1)
		return 0;
	site->now = bpf_ktime_get_ns();
	site->sp = PT_REGS_SP(ctx);
	site->thread = thread_get(epoch, site->cookie, site->now);
	return site->thread != 0;
}

/* At an entry. False if nothing is recorded. */
static __always_inline bool op_begin(struct pt_regs *ctx, struct op_site *site)
{
	if (!op_site_at(ctx, site))
		return 0;
	site->sp += COOKIE_SP_DELTA(site->cookie);
	/* An open op at the very same place has been left too: this frame has replaced it. */
	thread_settle(site->thread, site->sp + 1, site->now);
	return 1;
}

#endif /* GP_BPF_THREAD_BPF_H */
