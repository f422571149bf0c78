/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * How far a capture is and what it has cost so far.
 */
#ifndef GP_CAPTURE_CORE_STATUS_H
#define GP_CAPTURE_CORE_STATUS_H

#include <stdbool.h>
#include <stdint.h>

/* Nanoseconds of CPU time since the capture started. */
struct capture_cost {
	uint64_t cpu_ns; /* that the targets used, `inside` included */
	/* Operators reported by the collectors: counted, times what one costs; and rest_ns. */
	uint64_t callbacks_ns;
	uint64_t rest_ns;   /* callbacks while only annotations are reported: estimated from timed
			       ones */
	uint64_t gpu_ns;    /* records of CUPTI: counted, times what one is assumed to cost */
	uint64_t probes_ns; /* hits of probes: counted, times what one costs */
	uint64_t collector_ns; /* the collectors' own threads: measured */
	uint64_t samples_ns;   /* the program that interrupts threads to sample them: measured */
	/* What they lose beside it: the interrupt, caches. Estimated from samples_ns. */
	uint64_t samples_around_ns;
	uint64_t own_ns;    /* gpuprof itself: measured */
	uint64_t inside_ns; /* in the targets */
	uint64_t cost_ns;   /* all */
	/* One operator: by comparing steps if op_known, else estimated from timed callbacks, 0: not
	 * known. */
	double op_ns, op_error_ns;
	bool op_known;
};

struct capture_status {
	uint64_t events_nr;
	uint64_t targets_ns;	  /* CPU time of the processes, when the capture has stopped */
	uint64_t lost_nr;	  /* events that found no room or were refused */
	uint64_t bytes;		  /* of all recordings */
	uint64_t recording_bytes; /* of the one in progress */
	uint64_t running_ns; /* since the start, without the time that the CPU's side was off */
	uint32_t off;	     /* enum capture_side bits */
	bool switching;	     /* what capture__switch() asked for is not yet done */
	uint32_t sites_nr;
	uint32_t functions_nr;
	uint32_t not_placed_nr;
	uint32_t processes_nr;	/* that have been in it */
	uint32_t callbacks_nr;	/* of them: processes whose ops come from the collector */
	uint32_t recordings_nr; /* recordings that have ended, whole or early */
	uint32_t files_nr;	/* recordings that have a file: those and the ones in progress */
	bool unwritten;		/* nothing can be written now: see outlive_disk */
	/* By steps only. */
	bool over;		/* the schedule has ended: time to stop */
	uint64_t steps_nr;	/* steps since the first one was known */
	uint64_t late_steps_nr; /* of these: passed while gpuprof was not ready to record them */
	const char *steps_by; /* the annotation that marks them, "" a cycle of operators, NULL: none
			       * known yet */
	/* With a budget only; cost as of the last poll. */
	bool budgeted;
	uint32_t windows_nr;
	uint64_t windows_steps_nr; /* of steps_nr, which lay in windows */
	struct capture_cost cost;
	const char *method; /* how probes are attached */
	bool no_bpf;	    /* they are not: the collector reports all there is */
};

#endif /* GP_CAPTURE_CORE_STATUS_H */
