/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What all stack walks share: the numbering of stacks.
 */
#ifndef GP_BPF_WALK_BPF_H
#define GP_BPF_WALK_BPF_H

#include "emit.bpf.h"
#include "walked.bpf.h"

/* Names of global functions, which the verifier checks once, whatever their arguments: each kind of
 * walk has its own. */
#if defined(WALK_OTHERS)
#define WALK_NAME(name) name##_waiting
#elif defined(WALK_SAMPLES)
#define WALK_NAME(name) name##_sampled
#else
#define WALK_NAME(name) name
#endif

/* Returns a stack's key in `stacks`, by the hash of its frames. Each epoch emits the stacks of
 * samples anew. */
static __always_inline __u64 walk_key(__u64 hash, __u32 nr, __u32 flags,
				      const struct thread_state *t)
{
#ifdef WALK_SAMPLES
	hash ^= t->owner >> 16;
#endif
	return gp_python_mix(hash, (__u64)nr << 32 | flags << 16 | (__u16)t->owner);
}

/* Returns the id of the stack with this key; 0 (counted): no room. *ret_new: emit the stack, and
 * report the result to walk_emitted(). */
static __always_inline __u32 walk_id(__u64 key, bool *ret_new)
{
	const __u32 *known = bpf_map_lookup_elem(&stacks, &key);
	__u32 id;

	*ret_new = false;
	if (known)
		return *known;
	id = __sync_fetch_and_add(&gp_stacks_nr, 1) + 1;
	if (bpf_map_update_elem(&stacks, &key, &id, BPF_NOEXIST)) {
		/* Another thread was faster, or the table is full. */
		known = bpf_map_lookup_elem(&stacks, &key);
		if (known)
			return *known;
		count_loss(GP_LOSS_STACK_ROOM);
		return 0;
	}
	*ret_new = true;
	return id;
}

/* Returns `id`, or 0 (counted) if its stack could not be emitted. */
static __always_inline __u32 walk_emitted(__u64 key, __u32 id, bool emitted)
{
	if (emitted)
		return id;
	(void)bpf_map_delete_elem(&stacks, &key);
	count_loss(GP_LOSS_STACK_ROOM);
	return 0;
}

#endif /* GP_BPF_WALK_BPF_H */
