/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Validation of what a collector wrote: one event at a time, in memory that the target cannot
 * reach.
 */
#ifndef GP_CAPTURE_COLLECTOR_EVENTS_H
#define GP_CAPTURE_COLLECTOR_EVENTS_H

#include "capture/collector/ring_reader.h"
#include "capture/collector/tid_map.h"

/* Name ids are below this. */
#define COLLECTOR_NAMES 65536
/* Ids of inputs too. */
#define COLLECTOR_INPUTS 65536

struct collector_events {
	uint16_t process_index;
	uint64_t opened_ns;	 /* no op can have begun before */
	int64_t clock_offset_ns; /* the target's CLOCK_MONOTONIC minus the machine's */
	struct tid_map tids;
	uint8_t announced[COLLECTOR_NAMES / 8]; /* bit: this name id has a name */
	uint8_t announced_inputs[COLLECTOR_INPUTS / 8];
	uint8_t announced_stacks[GP_RING_STACKS / 8];
	uint64_t refused_nr, names_lost_nr, stacks_lost_nr;
};

/* Namespaces and clock of the process. Never fails: what cannot be read counts as equal to ours. */
void collector_events__init(struct collector_events *e, pid_t pid, uint16_t process_index);
void collector_events__done(struct collector_events *e);

/* A new drain begins: now_ns bounds the times of events. */
uint64_t collector_events__now(struct collector_events *e);

/* Judges one event: a private copy, 8-byte aligned, in GP_RING_EVENT_BYTES of memory, which is
 * rewritten to what gpuprof knows. Returns the bytes to hand on, 0 if it was refused and counted.
 */
size_t collector_events__validate(struct collector_events *e, void *event, size_t bytes,
				  uint64_t now_ns);

#endif /* GP_CAPTURE_COLLECTOR_EVENTS_H */
