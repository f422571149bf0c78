/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Events out of the rings: believed or refused, and in which order they are taken. What the
 * kernel's programs say and what a collector inside a process says go the same way from here on.
 */
#include "capture/control/schedule_runner.h"
#include "capture/events/event_writer.h"
#include "recording/event_kinds.h"

#include <string.h>
#include <time.h>

/* Whether an event may be looked at: its kind known here and its length enough. */
static bool is_valid(struct capture *c, const void *event, size_t bytes)
{
	const struct gp_ev_head *head = event;
	size_t need = bytes < sizeof(*head) ? 0 : event_kind_of(event)->bytes;

	return need && bytes >= need && process_table__find(&c->processes, head->process);
}

/* An event that found its way into no recording. */
static int unwritten(struct capture *c, int err)
{
	if (!err)
		return 0;
	err = capture_note_error(c, c->out, err);
	c->unwritten_nr += !err;
	return err;
}

static int on_kernel_event(const void *event, size_t bytes, void *arg)
{
	struct capture *c = arg;
	const struct gp_ev_head *head = event;
	int err;

	if (!is_valid(c, event, bytes)) {
		c->refused_nr++;
		return 0;
	}
	err = event_put(c, process_table__find(&c->processes, head->process), SOURCE_KERNEL, event,
			bytes);
	return unwritten(c, err);
}

/* A collector collects from the moment it is armed, a little before the capture's window opens.
 * What ids stand for is kept, whenever it was told, and what an op was called with; and so are
 * readings of the clock: they say how good the first times are. What is allocated before a
 * recording begins is freed in it. */
static bool before_start(struct capture *c, const void *event)
{
	const struct gp_ev_head *head = event;
	uint64_t start_ns = event_start_ns(event), from_ns = c->start_ns;
	const struct segment *to = c->schedule_runner ? event_segment(c, event) : NULL;

	if (to && to->start_ns && head->kind != GP_EV_MEMORY)
		from_ns = to->start_ns;
	if (event_kind_of(event)->flags & EVENT_KIND_REFERENCE)
		return false;
	if (!c->started || head->time_ns < from_ns)
		return true;
	if (!start_ns || start_ns >= from_ns)
		return false;
	c->open_at_start_nr++;
	return true;
}

/* Of CUPTI, each of which costs the process something. */
static bool is_record(uint8_t kind)
{
	return event_kinds[kind].flags & EVENT_KIND_CUPTI;
}

static int put_collector_event(const void *event, size_t bytes, void *arg)
{
	struct capture *c = arg;
	struct traced_process *m =
		process_table__find(&c->processes, ((const struct gp_ev_head *)event)->process);

	return unwritten(c, event_put(c, m, SOURCE_COLLECTOR(m->serial), event, bytes));
}

/* Of a kind that collectors may tell: collector_events.c has judged it. */
static int on_collector_event(const void *event, size_t bytes, void *arg)
{
	struct capture *c = arg;
	const struct gp_ev_head *head = event;

	if (!is_valid(c, event, bytes)) {
		c->refused_nr++;
		return 0;
	}
	if (before_start(c, event))
		return 0;
	c->collector_ops_nr += head->kind == GP_EV_OP && !event_is_end_alone(event);
	c->collector_memory_nr += head->kind == GP_EV_MEMORY;
	c->collector_gpu_nr += is_record(head->kind);
	/* By steps a recording's window is another matter. */
	if (c->stopped && !c->schedule_runner && is_record(head->kind) &&
	    late_records__keep(&c->late_records, event, bytes, c->end_ns))
		return 0;
	return put_collector_event(event, bytes, c);
}

int capture_put_late_records(struct capture *c)
{
	return late_records__each(&c->late_records, put_collector_event, c);
}

/* By steps what the kernel tells is taken after what the collectors told until later: when it is
 * taken, it is known in which step it was. */
static int hold_kernel_event(const void *event, size_t bytes, void *arg)
{
	struct capture *c = arg;
	uint64_t nr = bytes;

	buf__add(&c->schedule_runner->held, &nr, sizeof(nr));
	buf__add(&c->schedule_runner->held, event, bytes);
	buf__add(&c->schedule_runner->held, (const char[8]){0}, -bytes & 7);
	c->failed = c->failed ?: buf__error(&c->schedule_runner->held);
	return c->failed;
}

static void take_held(struct capture *c)
{
	struct buf *held = &c->schedule_runner->held;

	for (size_t at = 0; at < held->nr && !c->failed;) {
		uint64_t bytes;

		memcpy(&bytes, held->bytes + at, sizeof(bytes));
		at += sizeof(bytes);
		(void)on_kernel_event(held->bytes + at, bytes, c);
		at += (bytes + 7) & ~7ULL;
	}
	buf__clear(held);
}

static void drain(struct capture *c,
		  int (*from)(struct collector_client *, collector_event_fn, void *))
{
	uint64_t begin_ns;

	if (!c->failed)
		(void)probe_session__drain(
			c->probes, c->schedule_runner ? hold_kernel_event : on_kernel_event, c);
	begin_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	for (size_t i = 0; i < c->processes.nr && !c->failed; i++)
		if (c->processes.items[i]->collector)
			(void)from(c->processes.items[i]->collector, on_collector_event, c);
	if (c->started)
		c->collector_drain_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns;
	if (c->schedule_runner)
		take_held(c);
}

void capture_drain(struct capture *c)
{
	drain(c, collector_client__drain);
}

void capture_take(struct capture *c)
{
	drain(c, collector_client__take);
}

void capture_stop_collector(struct capture *c, struct collector_client *g, bool gone)
{
	collector_client__stop(g, gone, c->failed ? NULL : on_collector_event, c);
	c->cost.stops_ns += collector_client__take_held_ns(g);
}

void capture_retain_features(struct capture *c, struct collector_client *g, uint32_t features)
{
	collector_client__retain(g, features, c->failed ? NULL : on_collector_event, c);
}

void capture_drain_collector(struct capture *c, struct collector_client *g)
{
	if (!c->failed)
		(void)collector_client__drain(g, on_collector_event, c);
}
