/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What both kinds of samples share: a thread's stack, walked in memory that is not the thread's
 * own, and its event.
 */
#ifndef GP_BPF_SAMPLE_BPF_H
#define GP_BPF_SAMPLE_BPF_H

#define WALK_SAMPLES
#include "stack_walk.bpf.h"

/* A thread's position in its code. */
struct stack_at {
	__u64 ip, sp, bp;
};

/* As in thread_state. */
static __always_inline __u64 sampled_owner(__u32 epoch, __u16 process)
{
	return (__u64)epoch << 16 | process;
}

/* Returns the thread's state in this capture. NULL: the kernel refuses it, as it may in an
 * interrupt that finds no memory or interrupts another allocation. */
static __always_inline struct sampled_thread *sampled_get(struct task_struct *task, __u64 owner)
{
	struct sampled_thread *s =
		bpf_task_storage_get(&sampled_threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!s)
		return 0;
	if (s->owner != owner) {
		s->wait.nr = 0;
		s->wait.head.flags = 0xff; /* no state: the next sample is no continuation */
		s->again = 0;
		s->owner = owner;
	}
	return s;
}

/* Takes the kernel's frames that a helper has written to m->kernel (`bytes` of them; negative: it
 * failed), from number `at` on. */
static __always_inline void sample_kernel(struct sample_walk *m, long bytes, __u32 at)
{
	__u32 nr = bytes > 0 ? (__u32)bytes / sizeof(__u64) : 0;
	__u64 hash;

	if (bytes < 0)
		count_loss(GP_LOSS_KERNEL_STACK);
	nr = nr > at ? nr - at : 0;
	if (nr > GP_KERNEL_FRAMES)
		nr = GP_KERNEL_FRAMES;
	hash = nr;
	for (__u32 i = 0; i < GP_KERNEL_FRAMES && i < nr && at <= GP_INTERRUPT_FRAMES; i++)
		hash = gp_python_mix(hash, m->kernel[at + i]);
	m->kernel_hash = hash;
	m->kernel_at = at;
	m->kernel_nr = nr;
}

/* Returns the id of the thread's stack; 0: none. `s` is the thread's state, which saves a search
 * for Python's; NULL: none. */
static __always_inline __u32 sample_stack(struct sample_walk *m, struct sampled_thread *s,
					  __u64 owner, __u32 tid, const struct stack_at *at,
					  __u64 now)
{
	__u32 id;

	m->thread.owner = owner;
	m->thread.tid = tid;
	m->python.tstate = s ? s->tstate : 0;
	m->python.single = s ? s->single : 0;
	m->native.walk.flags = 0;
	id = stack_walked(&m->thread, at->ip, at->sp, at->bp, now);
	if (s) {
		s->tstate = m->python.tstate;
		s->single = m->python.single;
	}
	return id;
}

/* False: no room (counted). */
static __always_inline bool sample_emit(const struct gp_ev_sample *sample)
{
	struct gp_ev_sample *event = emit_reserve(sizeof(*event));

	if (!event)
		return false;
	*event = *sample;
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
	return true;
}

#endif /* GP_BPF_SAMPLE_BPF_H */
