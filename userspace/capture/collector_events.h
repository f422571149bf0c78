/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * From what a collector wrote to what gpuprof believes: one event at a time, in memory that the
 * target cannot reach. Internal to capture/.
 */
#ifndef GP_CAPTURE_COLLECTOR_EVENTS_H
#define GP_CAPTURE_COLLECTOR_EVENTS_H

#include "base/vec.h"
#include "capture/collector_ring.h"
#include "capture/collector_tids.h"

/* No event in the ring is longer. */
#define COLLECTOR_EVENT_BYTES 1024

struct collector_events {
	uint16_t process_index;
	uint64_t opened_ns;	 /* no op can have begun before */
	int64_t clock_offset_ns; /* the target's CLOCK_MONOTONIC minus the machine's */
	struct collector_tids tids;
	VEC(uint32_t) names; /* the collector's name id -> the sink's */
	uint64_t refused_nr, names_lost_nr;
};

/* Namespaces and clock of the process. Never fails: what cannot be read counts as equal to ours. */
void collector_events__init(struct collector_events *e, pid_t pid, uint16_t process_index);
void collector_events__done(struct collector_events *e);

/* A new drain begins: now_ns bounds the times of events. */
uint64_t collector_events__now(struct collector_events *e);

/* Judges one event (a private copy, 8-byte aligned, which it may change) and hands it to the sink.
 * *ret_taken says whether the sink got an event. Returns the sink's result. */
int collector_events__take(struct collector_events *e, void *event, size_t bytes, uint64_t now_ns,
			   const struct collector_sink *sink, bool *ret_taken);

#endif /* GP_CAPTURE_COLLECTOR_EVENTS_H */
