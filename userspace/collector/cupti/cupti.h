/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * GP_FEATURE_CUPTI: what the GPU did and which calls asked for it, from CUPTI's activity records to
 * the ring. All functions but cupti__forget() are for the collector's own thread. CUPTI calls us
 * back on other threads only to get and return buffers. When the process ends by exit(), the thread
 * that ends it takes the last records first.
 */
#ifndef GP_COLLECTOR_CUPTI_CUPTI_H
#define GP_COLLECTOR_CUPTI_CUPTI_H

#include "collector/runtime/ring_writer.h"

#include <stdbool.h>

enum cupti_outcome {
	CUPTI_ARMED = 0,
	CUPTI_LATER = 1,   /* no CUDA yet, or CUPTI is someone else's for now: try again */
	CUPTI_REFUSED = 2, /* will not change: why_text says what */
	CUPTI_HELD_UP = 3, /* threads are always in calls of CUDA: try again, not too often */
};

/* The calling thread is the collector's from now on: what it calls is not told. */
void cupti__set_own_thread(void);

/* Finds CUPTI, takes it and switches the records on; may take seconds. Events go to `w` from
 * cupti__poll() and cupti__disarm() only, but for a first reading of the clock. `starting`: see
 * cupti_library__bind(). A CUPTI that is known to endanger the process is refused, unless `any`.
 * why_text, which stays, is set unless CUPTI_ARMED. */
enum cupti_outcome cupti__arm(struct ring_writer *w, bool starting, bool any,
			      const char **why_text);

/* Switches the records off and converts the last ones; CUPTI stays ours, until cupti__arm()
 * switches them on again. Fine when not armed, and while it rests. */
void cupti__pause_records(void);

/* Converts what has come in; asks CUPTI for what it still holds if `flush`. Fine when not armed. */
void cupti__poll(bool flush);

/* Switches the records off, converts the last ones and gives CUPTI back, taking it down where that
 * may be (cupti_takedown.h); may take seconds. Fine when not armed. */
void cupti__disarm(void);

/* In a fork's child: forgets all, touches nothing of CUDA. */
void cupti__forget(void);

#endif /* GP_COLLECTOR_CUPTI_CUPTI_H */
