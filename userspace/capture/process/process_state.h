/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The process set of a capture: its traced processes and what is kept beside them. The files of
 * this room share it; others read it.
 */
#ifndef GP_CAPTURE_PROCESS_PROCESS_STATE_H
#define GP_CAPTURE_PROCESS_PROCESS_STATE_H

#include "base/vec.h"
#include "capture/collector/client.h"
#include "capture/core/options.h"
#include "capture/core/run.h"
#include "capture/process/cpu_clocks.h"
#include "capture/process/gpu_unavailable.h"
#include "capture/process/process_table.h"
#include "capture/process/threads.h"
#include "capture/recordings/recording_set.h"
#include "capture/symbols/symbol_tables.h"
#include "probe/session/session.h"

/* How the room above takes events. */
struct event_drain {
	/* Takes every event that is there, and holds threads of processes whose collectors ask for
	 * that. */
	void (*drain)(void *arg);
	/* Takes every event that is there, no more: while threads are held already. */
	void (*take)(void *arg);
	/* Takes one event of a collector. */
	collector_event_fn on_event;
	void *arg;
};

/* Of processes that are gone, and what was missed of others. */
struct process_counts {
	uint64_t losses[GP_LOSS_NR]; /* of collectors that are gone */
	struct callback_cost timed;  /* likewise */
	uint32_t callbacks_nr;	     /* processes that are gone and had callbacks */
	uint64_t left_nr;	     /* collectors that left or gave up a feature */
	uint64_t child_late_nr, child_missed_nr;
};

struct process_set {
	/* Borrowed. */
	const struct capture_options *options;
	struct capture_run *run;
	struct probe_session *probes;
	struct recording_set *recordings;
	struct symbol_tables *symbols;
	struct event_drain drain;
	/* Its own. */
	struct process_table table;
	struct threads threads; /* their names */
	struct gpu_unavailable gpu_unavailable;
	struct cpu_clocks clocks;
	struct process_counts counts;
	uint64_t stops_ns; /* for which threads of processes were borrowed or held */
	VEC(pid_t) born;   /* children that have not been taken in yet */
};

#endif /* GP_CAPTURE_PROCESS_PROCESS_STATE_H */
