/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A capture by steps: a schedule over the steps of the first process, one recording for each cycle.
 * A recording holds more than its window says: what came while the schedule warmed up, and what was
 * read before it was known that a step had ended. timeline/ leaves that out.
 */
#ifndef GP_CAPTURE_CONTROL_SCHEDULE_RUNNER_H
#define GP_CAPTURE_CONTROL_SCHEDULE_RUNNER_H

#include "base/buf.h"
#include "capture/policy/step_finder.h"
#include "capture/private.h"

struct schedule_runner {
	struct schedule schedule;
	struct step_finder *finder;
	uint64_t step;	/* of the schedule, the one that runs */
	uint64_t shift; /* the program's steps are so many more, as gpuprof was too slow for them */
	uint64_t first_ns;	  /* when step 0 began; 0: steps are not known yet */
	uint64_t all_on_since_ns; /* everything has been collected since; UINT64_MAX: is not */
	uint64_t file_since_ns;	  /* there has been a recording to write to since */
	bool wants_all;
	bool recording; /* a cycle's active steps run */
	bool over;
	uint64_t closing_asked_ns; /* when collectors were asked for the last events of a cycle */
	bool closing_drained;	   /* and those have been taken */
	/* Events of the kernel's ring, until those of the collectors of the same time are seen. */
	struct buf held;
};

/* NULL: out of memory. */
struct schedule_runner *schedule_runner__new(const struct schedule *schedule);
void schedule_runner__free(struct schedule_runner *s);

/* The capture starts. 0 or -errno. */
int schedule_runner_start(struct capture *c);

/* One op, in the recording's numbers, is seen to have finished. */
void schedule_runner_op(struct capture *c, uint32_t source_process, const struct gp_ev_op *op);

/* Between two drains: follows what the collectors do, and finishes recordings. */
void schedule_runner_poll(struct capture *c);

/* The capture stops; every event has been taken. 0 or -errno. */
int schedule_runner_stop(struct capture *c);

#endif /* GP_CAPTURE_CONTROL_SCHEDULE_RUNNER_H */
