/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Samples threads on a CPU, every gp_sample_ns. Sleeping threads and context switches cost nothing.
 * gp_sample_ns may change at any time: it is read once per sample, which stands for the value read.
 *
 * A timer of our own would interrupt the CPU for this, which costs more than the sample: in a
 * virtual machine each interrupt is several exits to the host. So where the scheduler's tick comes
 * often enough, samples are taken within it: of all points in time that are gp_sample_ns apart,
 * each is sampled at the first tick after it. A tick stands for the time since the one before, so
 * on average a thread gets the same number of samples, unless it sleeps and works in step with the
 * tick. Other interrupts would not do: those that wake a thread find it asleep. When the period
 * changes each tick still gets its share, since it uses one period only.
 *
 * Threads that share a CPU are in step with the tick, since the tick switches between them: one
 * that sleeps before the next tick is never met. So ticks at which another thread waits are
 * counted, and where there are many, user space starts a timer.
 */
#include "sample.bpf.h"

#include <bpf/bpf_core_read.h>

static __always_inline __u64 sample_period(void)
{
	return *(const volatile __u64 *)&gp_sample_ns;
}

/* Counts samples of this CPU that were due since the last tick and were not taken. */
static __always_inline void tick_count_missed(__u64 nr)
{
	struct counters *c = nr ? counters_get() : 0;

	if (c)
		__sync_fetch_and_add(&c->losses[GP_LOSS_SAMPLE_MISSED], nr);
}

/* Returns this CPU's memory; NULL: none, or nothing is sampled now. */
static __always_inline struct sample_walk *tick_begin(void)
{
	struct sample_walk *m = sample_memory();

	if (m && !gp_epoch) {
		m->tick_ns = m->timer_ns = m->period_ns = 0;
		return 0;
	}
	return m;
}

static __always_inline struct gp_sampled_cpu *this_cpu(void)
{
	__u32 at = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&sampled_cpus, &at);
}

/* Returns the owner of the current thread, as in thread_state. 0: its process is not sampled. */
static __always_inline __u64 tick_owner(void)
{
	__u32 tgid = (__u32)(bpf_get_current_pid_tgid() >> 32);
	__u16 index;

	return process_index(tgid, &index) ? sampled_owner(gp_epoch, index) : 0;
}

static __always_inline void tick_sample(struct sample_walk *m, __u64 owner, bool in_kernel,
					__u64 now, __u64 weight_ns)
{
	struct sampled_thread *s = sampled_get(bpf_get_current_task_btf(), owner);
	/* The registers when the thread left user mode, if the tick found it in the kernel. */
	const struct pt_regs *regs =
		(const struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());
	struct stack_at at = {regs->ip, regs->sp, regs->bp};
	__u32 tid = (__u32)bpf_get_current_pid_tgid();
	struct gp_ev_sample sample = {
		.head = {.kind = GP_EV_SAMPLE,
			 .flags = GP_SAMPLE_RUNNING | (in_kernel ? GP_SAMPLE_KERNEL : 0),
			 .process = (__u16)owner,
			 .tid = tid,
			 .time_ns = now},
		.start_ns = now,
		.weight_ns = weight_ns,
		.nr = 1,
		.syscall = in_kernel ? (__u32)regs->orig_ax : GP_SAMPLE_NO_SYSCALL,
	};
	struct counters *c;

	sample.stack_id = sample_stack(m, s, owner, tid, &at, now);
	(void)sample_emit(&sample);
	c = counters_get();
	if (c)
		c->sampling_ns += bpf_ktime_get_ns() - now;
}

/* ---- by a timer of our own ---- */

/* Returns the time that this tick stands for, 0: none. At the first tick after a change of the
 * period it is all the time since the last one. */
static __always_inline __u64 timer_weight(struct sample_walk *m, __u64 now)
{
	__u64 period = sample_period(), before = m->period_ns, last = m->timer_ns;
	__u64 past = last ? now - last : 0, most;

	m->timer_ns = now;
	m->period_ns = period;
	if (!past || before == period) {
		if (period && past >= period + period / 2)
			tick_count_missed((past + period / 2) / period - 1);
		return period;
	}
	most = before + period;
	if (period && past > most)
		tick_count_missed((past - most) / period);
	return past < most ? past : most;
}

/* Whether a timer samples this CPU for now. False: the tick does. */
static __always_inline bool timer_takes(struct sample_walk *m, const struct gp_sampled_cpu *cpu)
{
	__u64 turn = *(const volatile __u64 *)&cpu->timer_turn;

	if (turn && turn != m->timer_turn) {
		/* From here on, unless a tick came first. */
		m->timer_turn = turn;
		m->timer_ns = m->period_ns = 0;
	}
	return turn;
}

SEC("perf_event")
int gp_sample_timer(struct bpf_perf_event_data *ctx)
{
	bool in_kernel = !(ctx->regs.cs & 3);
	struct sample_walk *m = tick_begin();
	struct gp_sampled_cpu *cpu = gp_tick_ns ? this_cpu() : 0;
	__u64 now = bpf_ktime_get_ns(), weight_ns;
	__u64 owner;

	if (!m || (gp_tick_ns && (!cpu || !timer_takes(m, cpu))))
		return 0;
	weight_ns = timer_weight(m, now);
	owner = tick_owner();
	if (!owner || !weight_ns)
		return 0;
	if (cpu)
		cpu->ours++;
	sample_kernel(m, in_kernel ? bpf_get_stack(ctx, m->kernel, sizeof(m->kernel), 0) : 0, 0);
	tick_sample(m, owner, in_kernel, now, weight_ns);
	return 0;
}

/* ---- within the tick ---- */

/* Counts the points in time of this CPU, one per `period`, that lie after `from` and not after
 * `to`. */
static __always_inline __u64 points(__u64 period, __u64 from, __u64 to)
{
	/* CPUs are sampled at different times. */
	__u64 turn = bpf_get_smp_processor_id() * (period / (gp_cpus_nr | 1));

	return (to + turn) / period - (from + turn) / period;
}

/* Whether the kernel shows how many threads want a CPU. */
static __always_inline bool sees_waiting(void)
{
	const struct task_struct *task = bpf_get_current_task_btf();

	return bpf_core_field_exists(task->se.cfs_rq->rq) &&
	       bpf_core_field_exists(task->se.cfs_rq->rq->nr_running);
}

/* Counts a tick, and whether other threads wait for this CPU. */
static __always_inline void tick_count(struct gp_sampled_cpu *cpu)
{
	const struct task_struct *task = bpf_get_current_task_btf();

	if (!task->pid)
		return;
	cpu->ticks++;
	if (task->se.cfs_rq->rq->nr_running > 1)
		cpu->shared++;
}

/* Whether a sample is due, one per `period`. The clock also runs while the CPU is idle, without a
 * tick, or while the host runs others: a tick never stands for more than one sample. Nor does it
 * stand for the time that a timer's sample covers; the first tick after a timer's turn covers all
 * time since the last sample. */
static __always_inline bool tick_due(struct sample_walk *m, struct gp_sampled_cpu *cpu, __u64 now,
				     __u64 period)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 switches = task->nvcsw + task->nivcsw, last = m->tick_ns, from = last;
	bool went_on = task->pid && m->tick_task == (__u64)task && m->tick_switches == switches;
	__u64 timer_ns = m->timer_ns;

	if (!period)
		return false;
	m->tick_ns = now;
	m->tick_task = (__u64)task;
	m->tick_switches = switches;
	if (timer_takes(m, cpu)) {
		if (!m->timer_ns) {
			m->timer_ns = now;
			m->period_ns = period;
		}
		return false;
	}
	m->timer_ns = 0;
	if (!last || now - last > gp_tick_ns + gp_tick_ns / 8) {
		from = now - gp_tick_ns;
		if (last && went_on)
			tick_count_missed(points(period, last, from));
	} else if (timer_ns) {
		from = timer_ns;
	}
	return points(period, from, now);
}

/* Returns how many of GP_INTERRUPT_FRAMES frames are the interrupt's own; GP_INTERRUPT_FRAMES + 1:
 * unknown. */
static __always_inline __u32 own_frames(const __u64 *frames)
{
	__u32 at = 0;

	while (at < GP_INTERRUPT_FRAMES && frames[at] - gp_tick_code >= GP_TICK_CODE_BYTES)
		at++;
	return at + 1;
}

/* Does so for the frames in the CPU's memory. Global, so that the verifier does not follow each
 * number. */
__noinline __u32 tick_frames(void)
{
	const struct sample_walk *m = sample_memory();

	return m ? own_frames(m->kernel) : GP_INTERRUPT_FRAMES + 1;
}

/* The first argument is the timer. */
static __always_inline bool is_tick(const unsigned long long *ctx)
{
	const struct hrtimer *timer = (const struct hrtimer *)ctx[0];

	return (__u64)timer->function == gp_tick_function;
}

/* Loaded on its own first: checks that ticks come and that their frames can be recognised. */
SEC("tp_btf/hrtimer_expire_entry")
int gp_tick_check(unsigned long long *ctx)
{
	if (is_tick(ctx) && sees_waiting() &&
	    bpf_get_stack(ctx, gp_tick_stack, sizeof(gp_tick_stack), 0) > 0 &&
	    own_frames(gp_tick_stack) <= GP_INTERRUPT_FRAMES)
		__sync_fetch_and_add(&gp_ticks_seen, 1);
	return 0;
}

/* Runs at each kernel timer that expires. */
SEC("tp_btf/hrtimer_expire_entry")
int gp_sample_tick(unsigned long long *ctx)
{
	struct gp_sampled_cpu *cpu;
	struct sample_walk *m;
	__u64 now, period, owner;
	__u32 at;
	long bytes;

	if (!is_tick(ctx))
		return 0;
	m = tick_begin();
	cpu = this_cpu();
	now = bpf_ktime_get_ns();
	period = sample_period();
	if (!m || !cpu)
		return 0;
	tick_count(cpu);
	if (!tick_due(m, cpu, now, period))
		return 0;
	owner = tick_owner();
	if (!owner)
		return 0;
	cpu->ours++;
	/* The frames behind the interrupt's own are what it interrupted; none: user mode. */
	bytes = bpf_get_stack(ctx, m->kernel, sizeof(m->kernel), 0);
	at = tick_frames();
	if (at > GP_INTERRUPT_FRAMES || bytes >= (long)((GP_KERNEL_FRAMES - 1) * sizeof(__u64))) {
		bytes = -1;
		at = 0;
	}
	sample_kernel(m, bytes, at);
	tick_sample(m, owner, m->kernel_nr, now, period);
	return 0;
}
