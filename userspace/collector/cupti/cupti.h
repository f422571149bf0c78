/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * GP_FEATURE_CUPTI: what the GPU did, and which calls asked for it, from CUPTI's activity records
 * to the ring. All functions are for the collector's own thread, except for cupti__forget(). CUPTI
 * calls back on other threads only to get and return buffers. When the process ends by exit(), the
 * thread that ends it takes the last records first.
 */
#ifndef GP_COLLECTOR_CUPTI_CUPTI_H
#define GP_COLLECTOR_CUPTI_CUPTI_H

#include "collector/runtime/ring_writer.h"

#include <stdbool.h>

enum cupti_outcome {
	CUPTI_ARMED = 0,
	CUPTI_LATER = 1,   /* no CUDA yet, or another profiler has CUPTI: try again */
	CUPTI_REFUSED = 2, /* final */
	CUPTI_HELD_UP = 3, /* threads were always in CUDA calls: try again, but rarely */
};

/* Makes the calling thread the collector's: its own CUDA calls are not recorded. */
void cupti__set_own_thread(void);

/* Finds CUPTI, subscribes to it and switches the records on; may take seconds. After a first
 * reading of the clock, events go to `w` from cupti__poll(), cupti__pause_records() and
 * cupti__disarm() only. `starting`: see cupti_library__bind(). `any`: also a CUPTI that is known to
 * endanger the process. why_text is set unless CUPTI_ARMED, and stays valid. */
enum cupti_outcome cupti__arm(struct ring_writer *w, bool starting, bool any,
			      const char **why_text);

/* Switches the records off and converts the last ones. CUPTI stays ours; cupti__arm() switches the
 * records on again. Fine when not armed or paused already. */
void cupti__pause_records(void);

/* Converts the records that came in, after asking CUPTI for those it holds if `flush`. Fine when
 * not armed. */
void cupti__poll(bool flush);

/* Switches the records off, converts the last ones and gives CUPTI back, finalized where that is
 * safe (cupti_finalize.h); may take seconds. Fine when not armed. */
void cupti__disarm(void);

/* Forgets everything in a fork's child, without touching CUDA. */
void cupti__forget(void);

#endif /* GP_COLLECTOR_CUPTI_CUPTI_H */
