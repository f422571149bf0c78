/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Where stacks are put together: memory of the current thread, which nobody else touches; in a
 * program file that defines WALK_SAMPLES, memory of the CPU, which an interrupt has for itself, or
 * with WALK_OTHERS that of the one who walks others.
 */
#ifndef GP_BPF_WALK_MEMORY_BPF_H
#define GP_BPF_WALK_MEMORY_BPF_H

#include "walked.bpf.h"

#ifdef WALK_SAMPLES

static __always_inline struct sample_walk *sample_memory(void)
{
#ifdef WALK_OTHERS
	return walked_memory();
#else
	__u32 at = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&sample_walks, &at);
#endif
}

static __always_inline struct python_thread *python_memory(void)
{
	struct sample_walk *m = sample_memory();

	if (!m)
		return 0;
	/* Or the compiler adds before it looks. */
	barrier_var(m);
	return &m->python;
}

static __always_inline struct native_thread *native_memory(void)
{
	struct sample_walk *m = sample_memory();

	if (!m)
		return 0;
	/* Or the compiler adds before it looks. */
	barrier_var(m);
	return &m->native;
}

#else

static __always_inline struct python_thread *python_memory(void)
{
	struct python_thread *p;
	__u32 zero = 0, tid;
	void *nothing;

	if (gp_task_storage)
		return bpf_task_storage_get(&python_threads, bpf_get_current_task_btf(), 0,
					    BPF_LOCAL_STORAGE_GET_F_CREATE);
	tid = (__u32)bpf_get_current_pid_tgid();
	p = bpf_map_lookup_elem(&python_threads_by_tid, &tid);
	if (p)
		return p;
	nothing = bpf_map_lookup_elem(&no_python_thread, &zero);
	if (!nothing)
		return 0;
	(void)bpf_map_update_elem(&python_threads_by_tid, &tid, nothing, BPF_NOEXIST);
	return bpf_map_lookup_elem(&python_threads_by_tid, &tid);
}

static __always_inline struct native_thread *native_memory(void)
{
	struct native_thread *n;
	__u32 zero = 0, tid;
	void *nothing;

	if (gp_task_storage)
		return bpf_task_storage_get(&native_threads, bpf_get_current_task_btf(), 0,
					    BPF_LOCAL_STORAGE_GET_F_CREATE);
	tid = (__u32)bpf_get_current_pid_tgid();
	n = bpf_map_lookup_elem(&native_threads_by_tid, &tid);
	if (n)
		return n;
	nothing = bpf_map_lookup_elem(&no_native_thread, &zero);
	if (!nothing)
		return 0;
	(void)bpf_map_update_elem(&native_threads_by_tid, &tid, nothing, BPF_NOEXIST);
	return bpf_map_lookup_elem(&native_threads_by_tid, &tid);
}

#endif

#endif /* GP_BPF_WALK_MEMORY_BPF_H */
