/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Whether samples of one CPU are to be taken by a timer, and no longer within the scheduler's tick:
 * where threads share the CPU, the tick is what takes it from them and gives it to them, so ticks
 * find some threads more often than is due to them and others never. A timer wakes CPUs that are
 * idle and costs more, so it is for a time at most in which that was so and sampled threads ran
 * there. Pure: counts and times in, yes or no out.
 */
#ifndef GP_PROBE_SESSION_CPU_SHARING_H
#define GP_PROBE_SESSION_CPU_SHARING_H

#include "wire.h"

#include <stdbool.h>
#include <stdint.h>

/* Of the ticks in some time so many must have found others waiting, one in so many, for a timer to
 * begin; fewer than half as many, in all of TIMER_NS, end it. */
#define SHARING_LEAST	 4
#define SHARING_PART	 16
#define SHARING_SPAN_NS	 1000000000ULL /* no longer than this before */
#define SHARING_TIMER_NS 2000000000ULL /* no shorter than this */
#define SHARING_SAMPLES	 32	       /* nor than so many are apart */
/* Where it has met no thread that is sampled, the next one does not begin before, unless a tick
 * meets one. */
#define SHARING_REST_NS 10000000000ULL

struct cpu_sharing {
	bool timer;		   /* what was said last */
	bool known;		   /* the rest is */
	uint64_t since_ns;	   /* where what is judged began */
	struct gp_sampled_cpu was; /* then */
	uint64_t rest_until_ns;
};

/* Time has gone on; `is`: what has been counted so far, which only grows; `period_ns`: the time
 * between two samples. Returns `timer`. */
bool cpu_sharing__poll(struct cpu_sharing *c, const struct gp_sampled_cpu *is, uint64_t now_ns,
		       uint64_t period_ns);

#endif /* GP_PROBE_SESSION_CPU_SHARING_H */
