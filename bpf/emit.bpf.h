/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Counts losses and writes to the ring. An event without room is counted and lost. The reader polls
 * with a timeout; it is woken only when the ring has filled to gp_wakeup_bytes, which a thread
 * checks every GP_WAKEUP_EVERY of its own events.
 */
#ifndef GP_BPF_EMIT_BPF_H
#define GP_BPF_EMIT_BPF_H

#include "maps.bpf.h"

#define GP_WAKEUP_EVERY 64

/* Ends a bpf_loop() from its callback. The verifier requires a 0 or a 1, and a compiler that knows
 * the value would use whichever register holds it (clang 19 does). */
static __always_inline long loop_end(void)
{
	long end = 1;

	barrier_var(end);
	return end;
}

static __always_inline struct counters *counters_get(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&counters, &zero);
}

/* Atomic: another thread's program can preempt this one on the same CPU. */
static __always_inline void count_loss(enum gp_loss loss)
{
	struct counters *c = counters_get();

	if (c)
		__sync_fetch_and_add(&c->losses[loss], 1);
}

static __always_inline void count_hit(void)
{
	struct counters *c = counters_get();

	if (c)
		__sync_fetch_and_add(&c->other_hits, 1);
}

/* Reserves room for one event, which the caller fills completely. NULL (counted) if there is none.
 */
static __always_inline void *emit_reserve(__u64 bytes)
{
	void *event = bpf_ringbuf_reserve(&ring, bytes, 0);

	if (!event)
		count_loss(GP_LOSS_RING_FULL);
	return event;
}

/* Returns the flags of a rare event. */
static __always_inline __u64 emit_wakeup(void)
{
	return bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) >= gp_wakeup_bytes ? BPF_RB_FORCE_WAKEUP
									      : BPF_RB_NO_WAKEUP;
}

static __always_inline __u64 emit_flags(struct thread_state *t)
{
	return ++t->emitted % GP_WAKEUP_EVERY ? BPF_RB_NO_WAKEUP : emit_wakeup();
}

static __always_inline void emit_submit(void *event, struct thread_state *t)
{
	bpf_ringbuf_submit(event, emit_flags(t));
}

/* Emits a copy of an event. */
static __always_inline void emit_copy(void *event, __u64 bytes, struct thread_state *t)
{
	if (bpf_ringbuf_output(&ring, event, bytes, emit_flags(t)))
		count_loss(GP_LOSS_RING_FULL);
}

static __always_inline void emit_head(struct gp_ev_head *head, __u8 kind, __u8 flags,
				      const struct thread_state *t, __u64 now)
{
	head->kind = kind;
	head->flags = flags;
	head->process = (__u16)t->owner;
	head->tid = t->tid;
	head->time_ns = now;
}

/* False: the process is not in the capture. */
static __always_inline bool process_index(__u32 tgid, __u16 *ret_index)
{
	const __u32 *index = bpf_map_lookup_elem(&processes, &tgid);

	if (!index)
		return 0;
	*ret_index = (__u16)*index;
	return 1;
}

#endif /* GP_BPF_EMIT_BPF_H */
