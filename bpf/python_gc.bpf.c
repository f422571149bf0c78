/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Python's garbage collections, by CPython's own USDT probes where it was built with them. They
 * cost nothing until a collection runs.
 */
#include "thread.bpf.h"

/* Both probes in each process. */
#define BPF_USDT_MAX_SPEC_CNT (2 * GP_PROCESSES_MAX)
#include <bpf/usdt.bpf.h>

/* python:gc__start(int generation) */
SEC("usdt")
int gp_gc_start(struct pt_regs *ctx)
{
	__u64 now = bpf_ktime_get_ns();
	__u32 epoch = gp_epoch;
	struct thread_state *t;
	long generation = -1;

	if (!epoch)
		return 0;
	count_hit();
	t = thread_get(epoch, bpf_usdt_cookie(ctx), now);
	if (!t)
		return 0;
	(void)bpf_usdt_arg(ctx, 0, &generation);
	t->gc_generation = (__s32)generation;
	t->gc_start_ns = now;
	return 0;
}

/* python:gc__done(Py_ssize_t collected) */
SEC("usdt")
int gp_gc_done(struct pt_regs *ctx)
{
	__u32 epoch = gp_epoch;
	struct gp_ev_python_gc *event;
	struct thread_state *t;
	long collected = -1;

	if (!epoch)
		return 0;
	count_hit();
	t = thread_get(epoch, bpf_usdt_cookie(ctx), bpf_ktime_get_ns());
	if (!t)
		return 0;
	if (!t->gc_start_ns) {
		count_loss(GP_LOSS_OPEN_AT_START);
		return 0;
	}
	(void)bpf_usdt_arg(ctx, 0, &collected);
	event = emit_reserve(sizeof(*event));
	if (event) {
		emit_head(&event->head, GP_EV_PYTHON_GC, 0, t, bpf_ktime_get_ns());
		event->start_ns = t->gc_start_ns;
		event->collected = collected;
		event->generation = t->gc_generation;
		event->reserved = 0;
		emit_submit(event, t);
	}
	t->gc_start_ns = 0;
	return 0;
}
