/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What controllers see of a capture and may change in it, and what they share: the account of costs
 * and which side of collection is off.
 */
#ifndef GP_CAPTURE_CONTROL_CONTROL_H
#define GP_CAPTURE_CONTROL_CONTROL_H

#include "capture/control/cost.h"
#include "capture/core/options.h"
#include "capture/core/run.h"
#include "capture/events/event_writer.h"
#include "capture/process/process_state.h"
#include "capture/recordings/recording_set.h"

struct control {
	/* Borrowed. */
	const struct capture_options *options;
	struct capture_run *run;
	struct probe_session *probes;
	struct recording_set *recordings;
	struct process_set *processes;
	const struct event_counts *counts;
	/* Shared by controllers. */
	struct cost_keeper cost;
	uint32_t off;	    /* enum capture_side bits that are switched off */
	bool switching;	    /* collectors have not yet done what they were asked */
	uint64_t paused_ns; /* for which the CPU's side was off, in pauses that are over */
	double gpu_share;   /* of the processes' CPU time, that CUPTI's records have taken lately */
};

#endif /* GP_CAPTURE_CONTROL_CONTROL_H */
