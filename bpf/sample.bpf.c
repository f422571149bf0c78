/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Samples of threads that are on a CPU: a timer of each CPU looks at what runs there. Threads that
 * sleep cost nothing, and neither does switching between them.
 */
#include "sample.bpf.h"

/* Ticks of this CPU that were due since the last one and did not come. */
static __always_inline void tick_count_missed(struct sample_walk *m, __u64 now)
{
	__u64 last = m->tick_ns, nr;
	struct counters *c;

	m->tick_ns = now;
	if (!last || !gp_tick_ns || now - last < gp_tick_ns + gp_tick_ns / 2)
		return;
	nr = (now - last + gp_tick_ns / 2) / gp_tick_ns - 1;
	c = counters_get();
	if (c)
		__sync_fetch_and_add(&c->losses[GP_LOSS_SAMPLE_MISSED], nr);
}

static __always_inline void tick_sample(struct bpf_perf_event_data *ctx, struct sample_walk *m,
					struct sampled_thread *s, __u64 now)
{
	/* As the thread left user mode, where the tick found it in the kernel. */
	const struct pt_regs *regs =
		(const struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());
	bool in_kernel = !(ctx->regs.cs & 3);
	struct stack_at at = {regs->ip, regs->sp, regs->bp};
	__u32 tid = (__u32)bpf_get_current_pid_tgid();
	struct gp_ev_sample sample = {
		.head = {.kind = GP_EV_SAMPLE,
			 .flags = GP_SAMPLE_RUNNING | (in_kernel ? GP_SAMPLE_KERNEL : 0),
			 .process = (__u16)s->owner,
			 .tid = tid,
			 .time_ns = now},
		.start_ns = now,
		.weight_ns = gp_tick_ns,
		.nr = 1,
		.syscall = in_kernel ? (__u32)regs->orig_ax : GP_SAMPLE_NO_SYSCALL,
	};

	sample_kernel(m, in_kernel ? bpf_get_stack(ctx, m->kernel, sizeof(m->kernel), 0) : 0);
	sample.stack_id = sample_stack(m, s, tid, &at, now);
	(void)sample_tell(&sample);
}

SEC("perf_event")
int gp_tick(struct bpf_perf_event_data *ctx)
{
	__u32 epoch = gp_epoch, tgid = (__u32)(bpf_get_current_pid_tgid() >> 32);
	__u64 now = bpf_ktime_get_ns();
	struct sample_walk *m = sample_memory();
	struct sampled_thread *s;
	__u16 index;

	if (!m)
		return 0;
	if (!epoch) {
		m->tick_ns = 0;
		return 0;
	}
	tick_count_missed(m, now);
	if (!process_index(tgid, &index))
		return 0;
	s = sampled_get(bpf_get_current_task_btf(), epoch, index);
	if (s)
		tick_sample(ctx, m, s, now);
	return 0;
}
