/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The table of event kinds: what every stage has to know of a kind without reading its events. A
 * new kind is a row of this table, its structure in bpf/wire.h, and the function that reads it.
 */
#ifndef GP_RECORDING_EVENT_KINDS_H
#define GP_RECORDING_EVENT_KINDS_H

#include "wire.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define EVENT_FIELDS_MAX 2

enum event_kind_flags {
	/* Consumed on the way to the recording, and never in one. */
	EVENT_KIND_TRANSIENT = 1,
	/* CUPTI made it; each costs the traced process something. */
	EVENT_KIND_CUPTI = 2,
	/* Later events need it: it is kept even if it came before the capture's start. */
	EVENT_KIND_REFERENCE = 4,
};

/*
 * One kind of event. Fields are offsets from the event's first byte; 0, where the kind itself lies,
 * means that the kind has no such field. All fields lie within `bytes`, but for `inputs_id` and
 * name_ids[1], which a longer variant of the event may add: compare the offset with the event's
 * length. Every event also has head.process and head.time_ns; one of a moment has no start. In each
 * field the value 0 means none, but a name of 0 is counted as lost when it is captured. Capture
 * translates name_ids[0] by this table; a stack, inputs or a second name need a case in
 * capture/events/event_writer.c.
 */
struct event_kind {
	const char *name; /* "GP_EV_OP"; NULL: no such kind */
	uint16_t bytes;	  /* at least; 0: no such kind */
	uint16_t flags;	  /* enum event_kind_flags */

	uint16_t start_ns;		      /* u64, CLOCK_MONOTONIC */
	uint16_t queued_ns;		      /* u64, CLOCK_MONOTONIC */
	uint16_t correlation_id;	      /* u32, CUPTI's, within a process */
	uint16_t stack_id;		      /* u32 */
	uint16_t inputs_id;		      /* u32 */
	uint16_t name_ids[EVENT_FIELDS_MAX];  /* u32; the first one names the event */
	uint16_t instances[EVENT_FIELDS_MAX]; /* u64, of ops */
};

/* By kind; unknown ones are all zero. */
extern const struct event_kind event_kinds[UINT8_MAX + 1];

/* The row of the event's kind. `event` has a struct gp_ev_head at least. */
static inline const struct event_kind *event_kind_of(const void *event)
{
	return &event_kinds[((const struct gp_ev_head *)event)->kind];
}

/* When what the event reports began; 0: it reports a moment. `event` is as long as its kind at
 * least. */
static inline uint64_t event_start_ns(const void *event)
{
	uint16_t at = event_kind_of(event)->start_ns;
	uint64_t start_ns = 0;

	if (at)
		memcpy(&start_ns, (const char *)event + at, sizeof(start_ns));
	return start_ns;
}

/* CUPTI's correlation id; 0: none. `event` is as long as its kind at least. */
static inline uint32_t event_correlation_id(const void *event)
{
	uint16_t at = event_kind_of(event)->correlation_id;
	uint32_t id = 0;

	if (at)
		memcpy(&id, (const char *)event + at, sizeof(id));
	return id;
}

#endif /* GP_RECORDING_EVENT_KINDS_H */
