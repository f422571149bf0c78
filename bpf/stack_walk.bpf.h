/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The walked thread's stack as one id, with what is wanted of it: Python's frames, native ones, or
 * both. A native stack refers to the Python stack at the same moment, so both together have one id.
 */
#ifndef GP_BPF_STACK_WALK_BPF_H
#define GP_BPF_STACK_WALK_BPF_H

#include "python.bpf.h"
#include "unwind.bpf.h"

#ifdef WALK_SAMPLES

static __always_inline __u64 native_kernel_hash(void)
{
	struct sample_walk *m = sample_memory();

	return m ? m->kernel_hash : 0;
}

/* Appends the kernel's frames to the thread's own `nr`. Returns how many they are. */
static __always_inline __u32 native_kernel(struct native_thread *n, __u64 nr)
{
	struct sample_walk *m = sample_memory();
	__u64 at;

	if (!m || !m->kernel_nr)
		return 0;
	at = bounded(m->kernel_at, GP_INTERRUPT_FRAMES);
	if (bpf_probe_read_kernel(n->frames + nr, GP_KERNEL_FRAMES * sizeof(__u64), m->kernel + at))
		return 0;
	return m->kernel_nr;
}

#else

static __always_inline __u64 native_kernel_hash(void)
{
	return 0;
}

static __always_inline __u32 native_kernel(struct native_thread *n, __u64 nr)
{
	return 0;
}

#endif

/* Emits a stack with a new id. */
static __always_inline bool native_emit(struct native_thread *n, const struct thread_state *t,
					__u32 id, __u32 python_id, __u64 now)
{
	__u64 nr = bounded(n->walk.nr, GP_STACK_FRAMES);
	__u64 kernel_nr = bounded(native_kernel(n, nr), GP_KERNEL_FRAMES);

	emit_head(&n->event.head, GP_EV_NATIVE, (__u8)n->walk.flags, t, now);
	n->event.stack_id = id;
	n->event.python_id = python_id;
	n->event.frames_nr = (__u32)nr;
	n->event.maps_changes = n->walk.maps_known;
	/* Waking the reader for each one would cost more than emitting it; and it is gpuprof itself
	 * that walks other threads. */
#ifdef WALK_OTHERS
	__u64 wakeup = BPF_RB_NO_WAKEUP;
#else
	__u64 wakeup = emit_wakeup();
#endif

	n->event.kernel_nr = (__u32)kernel_nr;
	return !bpf_ringbuf_output(&ring, &n->event,
				   sizeof(n->event) + (nr + kernel_nr) * sizeof(__u64), wakeup);
}

static __always_inline __u32 native_id(struct native_thread *n, const struct thread_state *t,
				       __u32 python_id, __u64 now)
{
	const struct unwind_walk *w = &n->walk;
	/* After a mapping change an address means something else. */
	__u64 hash = gp_python_mix(w->hash, (__u64)w->maps_known << 32 | python_id);
	__u64 key = walk_key(hash, w->nr, w->flags, t);
	bool is_new;
	__u32 id = walk_id(key, &is_new);

	return is_new ? walk_emitted(key, id, native_emit(n, t, id, python_id, now)) : id;
}

/* Walks from n->walk on. */
static __always_inline __u32 native_stack(struct native_thread *n, const struct thread_state *t,
					  __u32 python_id, __u64 now)
{
	struct unwind_walk *w = &n->walk;

	w->hash = GP_STACK_WANT_NATIVE ^ native_kernel_hash();
	w->process = (__u16)t->owner;
	w->owner = t->owner;
	w->maps_known = unwind_maps_known(w->process);
	unwind_stack(n);
	if (w->flags & GP_STACK_TRUNCATED)
		count_loss(GP_LOSS_STACK_INCOMPLETE);
	if (gp_maps_changes[w->process & (GP_PROCESSES_MAX - 1)] != w->maps_known) {
		w->flags |= GP_STACK_INCOMPLETE;
		count_loss(GP_LOSS_UNWIND_TABLE);
	}
	return native_id(n, t, python_id, now);
}

#define stack_walked WALK_NAME(stack_walked)

/* Returns the id of the walked thread's stack, whose registers these are; 0 if it has none, or
 * (counted) it cannot be read. */
__noinline __u32 stack_walked(const struct thread_state *t, __u64 ip, __u64 sp, __u64 bp, __u64 now)
{
	struct native_thread *n = 0;
	__u32 python_id = 0;

	if (!t || !gp_stacks)
		return 0;
	if (gp_stacks & GP_STACK_WANT_NATIVE) {
		n = native_memory();
		if (!n) {
			count_loss(GP_LOSS_STACK_ROOM);
			return 0;
		}
		/* Not built on the stack first: see python_emitted(). */
		__builtin_memset(&n->walk, 0, sizeof(n->walk));
		n->walk.ip = ip;
		n->walk.sp = sp;
		n->walk.bp = bp;
		n->anchors_nr = 0;
	}
	if (gp_stacks & GP_STACK_WANT_PYTHON)
		python_id = python_stack(t, n, now);
	return n ? native_stack(n, t, python_id, now) : python_id;
}

#endif /* GP_BPF_STACK_WALK_BPF_H */
