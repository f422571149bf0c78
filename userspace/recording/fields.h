/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Which fields of an event mean something only within its recording or on its machine's clock: who
 * moves events from one recording to another changes these and nothing else.
 */
#ifndef GP_RECORDING_FIELDS_H
#define GP_RECORDING_FIELDS_H

#include <stddef.h>
#include <stdint.h>

#define EVENT_FIELDS_MAX 2

/*
 * Offsets, 0 at the end of each list: at 0 lies an event's kind. head.process and head.time_ns are
 * in all of them. In each field 0 stands for "none" and stays what it is.
 */
struct event_fields {
	uint16_t times[EVENT_FIELDS_MAX];     /* u64, CLOCK_MONOTONIC nanoseconds */
	uint16_t instances[EVENT_FIELDS_MAX]; /* u64, of ops */
	uint16_t name;			      /* u32, id of a name */
	uint16_t stack;			      /* u32, id of a stack */
	/* Only where the event is long enough: u32, id of a list of inputs; u32, id of a name. */
	uint16_t inputs;
	uint16_t kernel_name;
};

/* Those of a kind; NULL for an unknown one. */
const struct event_fields *recording_event_fields(uint8_t kind);

#endif /* GP_RECORDING_FIELDS_H */
