/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Samples threads that are on no CPU. gpuprof visits all threads of a process at its own pace, so
 * the process pays nothing, however often it switches. A stack is read once per wait, recognised by
 * the thread's number of switches; samples of one wait are emitted together.
 */
#define WALK_OTHERS
#include "sample.bpf.h"

#define TASK_EXITING  4 /* of task_struct.flags */
#define TASK_SLEEPS   1 /* of task_struct.__state */
#define TASK_SLEEPS_D 2
#define TASK_STOPS    12
#define TASK_IS_NOT   0x880 /* dead, or never ran */

#define WAIT_EMITTED_NS 1000000000ULL /* the longest time of a wait that is emitted at once */

/* Emits the wait that was seen last, once. */
static __always_inline void wait_emit(struct sampled_thread *s)
{
	struct gp_ev_sample sample = s->wait;

	sample.nr = __sync_lock_test_and_set(&s->wait.nr, 0);
	if (sample.nr)
		(void)sample_emit(&sample);
	s->wait.weight_ns = 0;
}

static __always_inline __u64 task_switches(const struct task_struct *task)
{
	const volatile struct task_struct *t = task;

	return t->nvcsw + t->nivcsw;
}

/* Since Linux 7.2 it is a byte. CO-RE adjusts the load's size where the field is unsigned. */
struct task_struct___on_cpu {
	unsigned int on_cpu;
} __attribute__((preserve_access_index));

static __always_inline bool task_runs(const struct task_struct *task)
{
	return ((const volatile struct task_struct___on_cpu *)task)->on_cpu;
}

static __always_inline __u8 wait_flags(__u32 state)
{
	if (!state)
		return GP_SAMPLE_RUNNABLE;
	if (state & TASK_STOPS)
		return GP_SAMPLE_STOPPED;
	return !(state & TASK_SLEEPS) && (state & TASK_SLEEPS_D) ? GP_SAMPLE_UNINTERRUPTIBLE : 0;
}

/* Walks the stack of a new wait. */
static __always_inline void wait_walk(struct task_struct *task, struct sampled_thread *s,
				      __u64 switches, __u64 now)
{
	const struct pt_regs *regs = (const struct pt_regs *)bpf_task_pt_regs(task);
	struct stack_at at = {regs->ip, regs->sp, regs->bp};
	struct sample_walk *m = sample_memory();

	if (!m)
		return;
	walked_set(task, at.sp);
	s->wait.syscall = (__u32)regs->orig_ax;
	sample_kernel(m, bpf_get_task_stack(task, m->kernel, sizeof(m->kernel), 0), 0);
	s->wait.stack_id = sample_stack(m, s, s->owner, walked_tid(), &at, now);
	s->again = m->native.walk.flags & GP_STACK_INCOMPLETE;
	if (task_runs(task) || task_switches(task) != switches) {
		count_loss(GP_LOSS_SAMPLE_MOVED);
		s->wait.head.flags |= GP_SAMPLE_MOVED;
		s->wait.stack_id = 0;
	}
}

static __always_inline void wait_sample(struct task_struct *task, struct sampled_thread *s,
					__u64 now)
{
	__u64 switches = task_switches(task);
	__u8 flags = wait_flags(task->__state);
	__u32 pid = (__u32)task->pid;
	bool is_new = s->switches != switches;

	s->switches = switches;
	s->looks = is_new ? 1 : s->looks + 1;
	/* An incomplete stack, mostly for want of a table, is tried again, less and less often. */
	if (is_new || (s->again && !(s->looks & (s->looks - 1))) ||
	    (s->wait.head.flags & ~GP_SAMPLE_MOVED) != flags) {
		wait_emit(s);
		s->wait.head.kind = GP_EV_SAMPLE;
		s->wait.head.flags = flags;
		s->wait.head.process = (__u16)s->owner;
		s->wait.head.tid = pid;
		wait_walk(task, s, switches, now);
	}
	if (!s->wait.nr)
		s->wait.start_ns = now;
	s->wait.head.time_ns = now;
	s->wait.weight_ns += gp_look_ns;
	__sync_fetch_and_add(&s->wait.nr, 1);
	if (s->wait.weight_ns >= WAIT_EMITTED_NS)
		wait_emit(s);
}

SEC("iter.s/task")
int gp_look(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	__u32 epoch = gp_epoch;
	struct sampled_thread *s;
	__u16 index;

	if (!task || !epoch || (task->flags & TASK_EXITING) ||
	    !process_index((__u32)task->tgid, &index))
		return 0;
	s = sampled_get(task, sampled_owner(epoch, index));
	if (!s) {
		count_loss(GP_LOSS_THREAD);
		return 0;
	}
	if (gp_look_emits || task_runs(task))
		wait_emit(s);
	else if (!(task->__state & TASK_IS_NOT))
		wait_sample(task, s, bpf_ktime_get_ns());
	return 0;
}

/* Emits what was seen of a thread that ends. */
SEC("raw_tp/sched_process_exit")
int gp_sampled_exit(void *ctx)
{
	struct sampled_thread *s =
		bpf_task_storage_get(&sampled_threads, bpf_get_current_task_btf(), 0, 0);

	if (s && gp_epoch && s->owner >> 16 == gp_epoch)
		wait_emit(s);
	return 0;
}
