/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What happens to a probed process as a whole: fork, exec, exit, and its loader mapping a library.
 * Emitted whether or not ops are being recorded.
 */
#include "emit.bpf.h"

#include <bpf/bpf_core_read.h>

#define SIGNAL_STOP 19

/* Stops the first process, once there is room for the event: its reader continues the process. Only
 * the first one, which is gpuprof's child and continues by itself if gpuprof dies. */
static __always_inline void process_stop(__u16 index)
{
	if (gp_stop_at_load && !index)
		(void)bpf_send_signal(SIGNAL_STOP);
}

static __always_inline void process_emit(__u16 index, __u32 what, __s32 value)
{
	struct gp_ev_process *event = emit_reserve(sizeof(*event));

	if (!event)
		return;
	if (what == GP_PROCESS_EXEC)
		process_stop(index);
	event->head.kind = GP_EV_PROCESS;
	event->head.flags = 0;
	event->head.process = index;
	event->head.tid = (__u32)bpf_get_current_pid_tgid();
	event->head.time_ns = bpf_ktime_get_ns();
	event->what = what;
	event->value = value;
	bpf_ringbuf_submit(event, BPF_RB_FORCE_WAKEUP);
}

/* (struct task_struct *p, ...) */
SEC("raw_tp/sched_process_exit")
int gp_process_exit(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *p = (struct task_struct *)ctx->args[0];
	__u64 id = bpf_get_current_pid_tgid();
	__u32 tid = (__u32)id, tgid = (__u32)(id >> 32);
	__s32 status;
	__u16 index;

	if (!gp_task_storage)
		(void)bpf_map_delete_elem(&threads_by_tid, &tid);
	if (!gp_task_storage && (gp_stacks & GP_STACK_WANT_PYTHON)) {
		(void)bpf_map_delete_elem(&python_threads_by_tid, &tid);
		(void)bpf_map_delete_elem(&python_windows_by_tid, &tid);
	}
	if (!gp_task_storage && (gp_stacks & GP_STACK_WANT_NATIVE))
		(void)bpf_map_delete_elem(&native_threads_by_tid, &tid);
	if (!process_index(tgid, &index))
		return 0;
	/* The process ends with its last thread. */
	if (BPF_CORE_READ(p, signal, live.counter) > 0)
		return 0;
	/* The next process with this number is another one: its exec and its children are not ours.
	 */
	(void)bpf_map_delete_elem(&processes, &tgid);
	/* As the parent sees it: the first thread's status, unless one thread ended them all. */
	status = BPF_CORE_READ(p, signal, group_exit_code);
	if (!status)
		status = BPF_CORE_READ(p, group_leader, exit_code);
	process_emit(index, GP_PROCESS_EXIT, status);
	return 0;
}

/* (struct task_struct *p, pid_t old_pid, struct linux_binprm *bprm). From here on a vfork child is
 * a process of its own. */
SEC("raw_tp/sched_process_exec")
int gp_process_exec(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *p = (struct task_struct *)ctx->args[0];
	__u32 tgid = (__u32)(bpf_get_current_pid_tgid() >> 32);
	__u16 index;

	if (process_index(tgid, &index)) {
		gp_loader_state[index & (GP_PROCESSES_MAX - 1)] = 0;
		process_emit(index, GP_PROCESS_EXEC, 0);
	} else if (process_index(BPF_CORE_READ(p, real_parent, tgid), &index)) {
		process_emit(index, GP_PROCESS_FORK, (__s32)tgid);
	}
	return 0;
}

/* (struct task_struct *parent, struct task_struct *child) */
SEC("raw_tp/sched_process_fork")
int gp_process_fork(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *parent = (struct task_struct *)ctx->args[0];
	struct task_struct *child = (struct task_struct *)ctx->args[1];
	__u32 tgid = (__u32)(bpf_get_current_pid_tgid() >> 32);
	__u16 index;
	int pid;

	if (!process_index(tgid, &index))
		return 0;
	pid = BPF_CORE_READ(child, pid);
	/* Skips new threads, and vfork children, which live in their parent's memory until exec. */
	if (BPF_CORE_READ(child, tgid) == pid &&
	    BPF_CORE_READ(child, mm) != BPF_CORE_READ(parent, mm))
		process_emit(index, GP_PROCESS_FORK, pid);
	return 0;
}

/* r_state of <link.h>. */
enum { LOADER_CONSISTENT = 0, LOADER_ADDS = 1, LOADER_REMOVES = 2 };

/* Counts what the loader does. Its state describes its first namespace only: no change twice means
 * a change in another one. */
static __always_inline void count_moves(__u32 i)
{
	__u32 did = gp_loader_did[i], does = LOADER_CONSISTENT;
	bool seen = gp_loader_state[i] &&
		    !bpf_probe_read_user(&does, sizeof(does), (const void *)gp_loader_state[i]);

	seen &= does != LOADER_CONSISTENT || did != LOADER_CONSISTENT;
	gp_loader_did[i] = does;
	if (!seen || does == LOADER_ADDS)
		__sync_fetch_and_add(&gp_maps_adds[i], 1);
	if (!seen || (does == LOADER_CONSISTENT && did == LOADER_REMOVES))
		__sync_fetch_and_add(&gp_maps_removals[i], 1);
}

/* The loader's _dl_debug_state(), called before and after the list of mapped libraries changes. */
SEC("uprobe")
int gp_loader(void *ctx)
{
	__u16 index = (__u16)(bpf_get_attach_cookie(ctx) >> 48);
	__u32 i = index & (GP_PROCESSES_MAX - 1);
	struct gp_ev_head *event;

	count_moves(i);
	__sync_fetch_and_add(&gp_maps_changes[i], 1);
	event = emit_reserve(sizeof(*event));
	if (!event)
		return 0;
	process_stop(index);
	event->kind = GP_EV_MAPS;
	event->flags = 0;
	event->process = index;
	event->tid = (__u32)bpf_get_current_pid_tgid();
	event->time_ns = bpf_ktime_get_ns();
	bpf_ringbuf_submit(event, BPF_RB_FORCE_WAKEUP);
	return 0;
}
