/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What the walks of stacks share: the numbering of stacks.
 */
#ifndef GP_BPF_WALK_BPF_H
#define GP_BPF_WALK_BPF_H

#include "emit.bpf.h"
#include "walked.bpf.h"

/* Of functions that are not static, so that the verifier looks at them once, whatever they are
 * called with: those that walk in another way are others. */
#if defined(WALK_OTHERS)
#define WALK_NAME(name) name##_waiting
#elif defined(WALK_SAMPLES)
#define WALK_NAME(name) name##_sampled
#else
#define WALK_NAME(name) name
#endif

/* The key of a stack in `stacks`, by the hash of its frames. Samples are told of anew in each
 * epoch.
 */
static __always_inline __u64 walk_key(__u64 hash, __u32 nr, __u32 flags,
				      const struct thread_state *t)
{
#ifdef WALK_SAMPLES
	hash ^= t->owner >> 16;
#endif
	return gp_python_mix(hash, (__u64)nr << 32 | flags << 16 | (__u16)t->owner);
}

/* The id of the stack that has the key; 0 (counted): there is no room. *ret_new: it is to be told
 * of, and walk_emitted() to hear how that went. */
static __always_inline __u32 walk_id(__u64 key, bool *ret_new)
{
	const __u32 *known = bpf_map_lookup_elem(&stacks, &key);
	__u32 id;

	*ret_new = false;
	if (known)
		return *known;
	id = __sync_fetch_and_add(&gp_stacks_nr, 1) + 1;
	if (bpf_map_update_elem(&stacks, &key, &id, BPF_NOEXIST)) {
		/* Another thread was quicker, or the table is full. */
		known = bpf_map_lookup_elem(&stacks, &key);
		if (known)
			return *known;
		count_loss(GP_LOSS_STACK_ROOM);
		return 0;
	}
	*ret_new = true;
	return id;
}

/* `id`, or 0 (counted) if what it stands for could not be told. */
static __always_inline __u32 walk_emitted(__u64 key, __u32 id, bool emitted)
{
	if (emitted)
		return id;
	(void)bpf_map_delete_elem(&stacks, &key);
	count_loss(GP_LOSS_STACK_ROOM);
	return 0;
}

#endif /* GP_BPF_WALK_BPF_H */
