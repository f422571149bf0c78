/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The memory in which stacks are built: the current thread's, which nobody else touches; in a
 * program file that defines WALK_SAMPLES, the CPU's, which an interrupt has for itself, or with
 * WALK_OTHERS that of the visitor of other threads.
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
	/* Otherwise the compiler adds before it checks. */
	barrier_var(m);
	return &m->python;
}

static __always_inline struct python_windows *python_windows_memory(void)
{
	struct sample_walk *m = sample_memory();

	if (!m)
		return 0;
	/* Otherwise the compiler adds before it checks. */
	barrier_var(m);
	return &m->windows;
}

static __always_inline struct native_thread *native_memory(void)
{
	struct sample_walk *m = sample_memory();

	if (!m)
		return 0;
	/* Otherwise the compiler adds before it checks. */
	barrier_var(m);
	return &m->native;
}

#else

static __always_inline struct python_thread *python_memory(void)
{
	return thread_memory(&python_threads, &python_threads_by_tid, &no_python_thread);
}

static __always_inline struct python_windows *python_windows_memory(void)
{
	return thread_memory(&python_windows, &python_windows_by_tid, &no_python_windows);
}

static __always_inline struct native_thread *native_memory(void)
{
	return thread_memory(&native_threads, &native_threads_by_tid, &no_native_thread);
}

#endif

#endif /* GP_BPF_WALK_MEMORY_BPF_H */
