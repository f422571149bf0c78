/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The thread whose stack is walked: the current one; in a program file that defines WALK_OTHERS,
 * any thread that is not running, one at a time, by the programs of one visitor (they may sleep).
 */
#ifndef GP_BPF_WALKED_BPF_H
#define GP_BPF_WALKED_BPF_H

#include "maps.bpf.h"

#ifndef WALK_OTHERS

/* Reads the thread's memory. False if that would have to wait. */
static __always_inline bool walked_read(void *to, __u32 bytes, __u64 address)
{
	return !bpf_probe_read_user(to, bytes, (const void *)address);
}

static __always_inline __u64 walked_thread_pointer(void)
{
	return bpf_get_current_task_btf()->thread.fsbase;
}

static __always_inline __u32 walked_tid(void)
{
	return (__u32)bpf_get_current_pid_tgid();
}

#else

extern struct task_struct *bpf_task_from_pid(int pid) __ksym __weak;
extern void bpf_task_release(struct task_struct *task) __ksym __weak;

/* The number of the thread being walked. */
static __u32 walked_now;
static __u64 walked_now_pointer;

static __always_inline struct sample_walk *walked_memory(void)
{
	__u32 at = gp_cpus_nr;

	return bpf_map_lookup_elem(&sample_walks, &at);
}

/* A task is only valid while it is held, and a walk cannot keep it. Where the kernel cannot find it
 * again, only what walked_set() has read is available. */
static __noinline bool walked_copy(void *to, __u32 bytes, __u64 address)
{
	struct task_struct *task;
	long err;

	if (!gp_task_by_pid)
		return false;
	task = bpf_task_from_pid((int)walked_now);
	if (!task)
		return false;
	err = bpf_copy_from_user_task(to, bytes, (const void *)address, task, 0);
	bpf_task_release(task);
	return !err;
}

static __noinline bool walked_read(void *to, __u32 bytes, __u64 address)
{
	struct sample_walk *m = walked_memory();
	__u64 at;

	if (!m)
		return false;
	at = address - m->window_at;
	if (at < GP_WALK_WINDOW && at + bytes <= m->window_bytes)
		return !bpf_probe_read_kernel(to, bytes, m->window + at);
	return walked_copy(to, bytes, address);
}

/* Begins with this task: reads its stack from sp on, as far as the window's pages reach. */
static __always_inline void walked_set(struct task_struct *task, __u64 sp)
{
	struct sample_walk *m = walked_memory();
	__u32 page = GP_WALK_WINDOW / 4;

	walked_now = (__u32)task->pid;
	walked_now_pointer = task->thread.fsbase;
	if (!m)
		return;
	m->window_at = sp & ~(__u64)(page - 1);
	m->window_bytes = 0;
	if (!bpf_copy_from_user_task(m->window, GP_WALK_WINDOW, (const void *)m->window_at, task,
				     0))
		m->window_bytes = GP_WALK_WINDOW;
	else if (!bpf_copy_from_user_task(m->window, page, (const void *)m->window_at, task, 0))
		m->window_bytes = page;
}

static __always_inline __u64 walked_thread_pointer(void)
{
	return walked_now_pointer;
}

static __always_inline __u32 walked_tid(void)
{
	return walked_now;
}

#endif

#endif /* GP_BPF_WALKED_BPF_H */
