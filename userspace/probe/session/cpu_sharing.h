/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Decides whether a timer, instead of the scheduler's tick, samples a CPU. Where threads share a
 * CPU, the tick itself switches between them, so ticks meet some threads too often and others
 * never. A timer wakes idle CPUs and costs more, so it is used only for a time after threads shared
 * the CPU and sampled threads ran there. Pure: counts and times in, a decision out.
 */
#ifndef GP_PROBE_SESSION_CPU_SHARING_H
#define GP_PROBE_SESSION_CPU_SHARING_H

#include "wire.h"

#include <stdbool.h>
#include <stdint.h>

/* A timer begins when at least one in so many ticks, within a span, found other threads waiting. It
 * ends when fewer than half as many did during all of SHARING_TIMER_NS. */
#define SHARING_LEAST	 4
#define SHARING_PART	 16
#define SHARING_SPAN_NS	 1000000000ULL /* the longest span before a timer begins */
#define SHARING_TIMER_NS 2000000000ULL /* the shortest time of a timer */
#define SHARING_SAMPLES	 32	       /* in periods: a timer lasts for at least so many samples */
/* After a timer that met no sampled thread the next one begins no earlier than this, unless a tick
 * meets one. */
#define SHARING_PAUSE_NS 10000000000ULL

struct cpu_sharing {
	bool timer;		   /* the last decision */
	bool known;		   /* the members below are set */
	uint64_t since_ns;	   /* begin of the span that is judged */
	struct gp_sampled_cpu was; /* the counters at that time */
	uint64_t rest_until_ns;
};

/* Decides anew. `is` holds the counters, which only grow; `period_ns` is the time between two
 * samples. Returns `timer`. */
bool cpu_sharing__poll(struct cpu_sharing *c, const struct gp_sampled_cpu *is, uint64_t now_ns,
		       uint64_t period_ns);

#endif /* GP_PROBE_SESSION_CPU_SHARING_H */
