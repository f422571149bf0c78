/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Takes events out of both rings. Those of the kernel's programs and of the collectors go the same
 * way from here on.
 */
#include "capture/dispatch.h"

#include "base/log.h"
#include "capture/process/probing.h"
#include "capture/process/process_set.h"
#include "common/clock.h"
#include "recording/event_kinds.h"

#include <string.h>
#include <time.h>

/* Whether an event may be looked at: its kind known here and its length enough. */
static bool is_valid(const struct dispatch *d, const void *event, size_t bytes)
{
	const struct gp_ev_head *head = event;
	size_t need = bytes < sizeof(*head) ? 0 : event_kind_of(event)->bytes;

	return need && bytes >= need && process_table__find(&d->processes->table, head->process);
}

/* Stacks that come to code without an unwind table are marked and counted. */
static void load_unwind_table(struct dispatch *d, struct traced_process *m,
			      const struct gp_ev_unwind *ev)
{
	int err = probe_session__load_unwind(d->processes->probes, m->index, ev->address);

	if (err)
		log_debug("%d: no unwind table for the code at %#llx: %s", (int)m->process->pid,
			  (unsigned long long)ev->address, strerror(-err));
}

/* What the process set is to know. */
static void notify_processes(struct dispatch *d, struct traced_process *m, const void *event)
{
	switch (((const struct gp_ev_head *)event)->kind) {
	case GP_EV_PROCESS:
		process_set__note_event(d->processes, m, event);
		break;
	case GP_EV_MAPS:
		m->maps.changed = true;
		break;
	case GP_EV_NATIVE:
		probing_follow_maps(d->processes, m);
		break;
	case GP_EV_UNWIND:
		load_unwind_table(d, m, event);
		break;
	default:
		break;
	}
}

static int put_op(struct dispatch *d, const struct event_place *place, struct traced_process *m,
		  uint32_t source, const void *event, size_t bytes)
{
	struct controllers *c = d->controllers;
	bool wanted = !c->chooses_ops || controllers__want_op(c, event);
	struct gp_ev_op op;
	int err = event_writer__put_op(d->writer, place, m, source, event, bytes, wanted, &op);

	if (err || !c->hears_ops)
		return err;
	return controllers__on_op(c, &op, names__text(&d->writer->symbols->names, op.name_id));
}

static int put(struct dispatch *d, const struct event_place *place, struct traced_process *m,
	       uint32_t source, const void *event, size_t bytes)
{
	struct controllers *c = d->controllers;
	int err = c->hears_events ? controllers__on_event(c, event) : 0;

	if (err)
		return err;
	if (((const struct gp_ev_head *)event)->kind == GP_EV_OP)
		return put_op(d, place, m, source, event, bytes);
	notify_processes(d, m, event);
	return event_writer__put(d->writer, place, m, source, event, bytes);
}

/* Takes a valid event of the process that its head names. */
static int take_event(struct dispatch *d, struct traced_process *m, uint32_t source,
		      const void *event, size_t bytes)
{
	struct event_place place;
	int err = event_writer__place(d->writer, m, event, &place);

	err = err ? err : put(d, &place, m, source, event, bytes);
	if (!err)
		return 0;
	err = recording_set__note_error(d->writer->recordings, place.to, err);
	d->writer->counts.unwritten_nr += !err;
	return err;
}

static int take_kernel_event(const void *event, size_t bytes, void *arg)
{
	const struct gp_ev_head *head = event;
	struct dispatch *d = arg;

	if (!is_valid(d, event, bytes)) {
		d->writer->counts.refused_nr++;
		return 0;
	}
	return take_event(d, process_table__find(&d->processes->table, head->process),
			  SOURCE_KERNEL, event, bytes);
}

/* A collector collects from the moment it is armed, a little before the capture's window opens.
 * What ids stand for is kept, whenever it was reported, and what an op was called with; and so are
 * readings of the clock: they say how good the first times are. What is allocated before a
 * recording begins is freed in it. */
static bool is_before_start(struct dispatch *d, const void *event)
{
	bool by_steps = capture_is_by_steps(d->writer->options);
	const struct segment *to = by_steps ? event_writer__segment(d->writer, event) : NULL;
	uint64_t start_ns = event_start_ns(event), from_ns = d->run->start_ns;
	const struct gp_ev_head *head = event;

	if (to && to->start_ns && head->kind != GP_EV_MEMORY)
		from_ns = to->start_ns;
	if (event_kind_of(event)->flags & EVENT_KIND_REFERENCE)
		return false;
	if (!d->run->started || head->time_ns < from_ns)
		return true;
	if (!start_ns || start_ns >= from_ns)
		return false;
	d->writer->counts.open_at_start_nr++;
	return true;
}

/* Whether it is a record of CUPTI: each costs the process something. */
static bool is_record(uint8_t kind)
{
	return event_kinds[kind].flags & EVENT_KIND_CUPTI;
}

static int put_collector_event(const void *event, size_t bytes, void *arg)
{
	const struct gp_ev_head *head = event;
	struct dispatch *d = arg;
	struct traced_process *m = process_table__find(&d->processes->table, head->process);

	return take_event(d, m, SOURCE_COLLECTOR(m->serial), event, bytes);
}

int dispatch__collector_event(const void *event, size_t bytes, void *arg)
{
	const struct gp_ev_head *head = event;
	struct dispatch *d = arg;
	struct event_counts *counts = &d->writer->counts;

	if (!is_valid(d, event, bytes)) {
		counts->refused_nr++;
		return 0;
	}
	if (is_before_start(d, event))
		return 0;
	counts->collector_ops_nr += head->kind == GP_EV_OP && !event_is_end_alone(event);
	counts->collector_memory_nr += head->kind == GP_EV_MEMORY;
	counts->collector_gpu_nr += is_record(head->kind);
	/* By steps a recording's window is another matter. */
	if (d->run->stopped && !capture_is_by_steps(d->writer->options) && is_record(head->kind) &&
	    late_records__keep(&d->late_records, event, bytes, d->run->end_ns))
		return 0;
	return put_collector_event(event, bytes, d);
}

int dispatch__put_late_records(struct dispatch *d)
{
	return late_records__each(&d->late_records, put_collector_event, d);
}

/* By steps what the kernel reports is taken after what the collectors reported until later: when it
 * is taken, it is known in which step it was. */
static int hold_kernel_event(const void *event, size_t bytes, void *arg)
{
	struct dispatch *d = arg;
	uint64_t nr = bytes;

	buf__add(&d->held, &nr, sizeof(nr));
	buf__add(&d->held, event, bytes);
	buf__add(&d->held, (const char[8]){0}, -bytes & 7);
	capture_run__fail(d->run, buf__error(&d->held));
	return d->run->failed;
}

static void take_held(struct dispatch *d)
{
	struct buf *held = &d->held;

	for (size_t at = 0; at < held->nr && !d->run->failed;) {
		uint64_t bytes;

		memcpy(&bytes, held->bytes + at, sizeof(bytes));
		at += sizeof(bytes);
		(void)take_kernel_event(held->bytes + at, bytes, d);
		at += (bytes + 7) & ~7ULL;
	}
	buf__clear(held);
}

static void drain(struct dispatch *d,
		  int (*from)(struct collector_client *, collector_event_fn, void *))
{
	const struct process_table *table = &d->processes->table;
	bool by_steps = capture_is_by_steps(d->writer->options);
	uint64_t begin_ns;

	if (!d->run->failed)
		(void)probe_session__drain(d->processes->probes,
					   by_steps ? hold_kernel_event : take_kernel_event, d);
	begin_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	for (size_t i = 0; i < table->nr && !d->run->failed; i++)
		if (table->items[i]->collector)
			(void)from(table->items[i]->collector, dispatch__collector_event, d);
	if (d->run->started)
		d->writer->counts.collector_drain_ns +=
			clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns;
	if (by_steps)
		take_held(d);
}

void dispatch__drain(void *d)
{
	drain(d, collector_client__drain);
}

void dispatch__take(void *d)
{
	drain(d, collector_client__take);
}

void dispatch__done(struct dispatch *d)
{
	late_records__done(&d->late_records);
	buf__done(&d->held);
}
