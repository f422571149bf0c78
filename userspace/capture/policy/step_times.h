/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * CPU time of steps, from readings of a thread's CPU time that the collector takes at the ends of
 * annotations. It does not take one at each, so several steps may lie between two. Pure.
 */
#ifndef GP_CAPTURE_POLICY_STEP_TIMES_H
#define GP_CAPTURE_POLICY_STEP_TIMES_H

#include "wire.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STEP_TIMES_READINGS 8 /* kept: they come before the annotation that they are of */

/* How far a thread was when an annotation on it ended. */
struct cpu_reading {
	uint32_t tid;
	uint64_t time_ns, cpu_ns;
};

/* All zero at first. */
struct step_times {
	struct cpu_reading readings[STEP_TIMES_READINGS];
	size_t readings_at;
	/* The last end of a step of which there is one, and what has been since. */
	struct cpu_reading last;
	uint32_t steps_nr;
	uint32_t ops_nr; /* of that thread */
};

/* Steps in a row on one thread. */
struct timed_steps {
	uint64_t from_ns; /* when the first one began */
	uint64_t cpu_ns;  /* of the thread, in all of them */
	uint32_t steps_nr;
	uint32_t ops_nr;
};

/* A thread's CPU time is told. */
void step_times__recorded(struct step_times *s, const struct gp_ev_cpu_time *ev);

/* An op has ended: counted if it is of the thread that has the steps. */
void step_times__op(struct step_times *s, const struct gp_ev_op *op);

/* A step ends at time_ns, as the end of this annotation says. True where that tells the CPU time of
 * the steps since it was known last. */
bool step_times__end(struct step_times *s, const struct gp_ev_op *op, uint64_t time_ns,
		     struct timed_steps *ret_steps);

#endif /* GP_CAPTURE_POLICY_STEP_TIMES_H */
