/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * How often to sample so that all that sampling costs is no more than a share of the targets' CPU
 * time. Pure: times and costs in, the time between two samples of each CPU out.
 *
 * What a sample costs the thread that it interrupts is known per sample, whatever the load; what
 * gpuprof itself spends is taken per turn of the clock, and what comes once alone (a table, a name)
 * is left out. The rate is what both allow, less what was overspent lately; it falls at once and
 * rises by steps.
 */
#ifndef GP_CAPTURE_POLICY_SAMPLING_RATE_H
#define GP_CAPTURE_POLICY_SAMPLING_RATE_H

#include <stdbool.h>
#include <stdint.h>

#define RATE_TURN_NS  1000000000ULL /* how often it is thought over */
#define RATE_OWN_NR   5		    /* so many turns say what gpuprof itself spends */
#define RATE_FLOOR_NS 1000000000ULL /* never fewer samples than one of each CPU in this time */

/* All totals since the same moment, nanoseconds. */
struct rate_account {
	uint64_t now_ns;
	uint64_t cpu_ns;    /* used by the targets, what sampling costs in them included */
	uint64_t inside_ns; /* that part of it */
	uint64_t own_ns;    /* spent by gpuprof for sampling */
};

/* What was in force in some time. */
struct rate_range {
	uint64_t time_ns;
	double due_nr;		    /* samples of each CPU that were due in it */
	uint64_t least_ns, most_ns; /* between two of them */
	uint64_t over_ns; /* so much of it the floor cost more than the share, while targets worked
			   */
};

struct sampling_rate {
	double share; /* of the targets' CPU time that may be spent; 0: the rate is fixed */
	uint64_t fastest_ns;
	uint64_t period_ns; /* in force */
	struct rate_account last;
	double cpus;		    /* that the targets use for themselves, lately */
	double cpus_before;	    /* in the turn before */
	uint64_t known_ns;	    /* time that `cpus` knows */
	double sample_ns;	    /* what one sample costs in the target */
	double own_ns[RATE_OWN_NR]; /* what gpuprof spent in a period of each of these turns */
	uint32_t own_nr;	    /* turns so far */
	double owed_ns;		    /* spent in advance */
	uint64_t over_ns; /* the floor costs more than the share for so long, targets working */
	struct rate_range range;
	uint64_t range_until_ns;
	bool skipping; /* nothing is sampled */
};

/* At most `hz` samples a second of each CPU, above 0; `percent` 0: just as many. The rate to begin
 * with is in period_ns. */
void sampling_rate__init(struct sampling_rate *r, double percent, uint32_t hz,
			 const struct rate_account *begin);

/* Time has gone on, by a turn at least. True: period_ns is another one. */
bool sampling_rate__poll(struct sampling_rate *r, const struct rate_account *a);

/* Nothing is sampled from now on, until the next turn, or was not since the last call: that time
 * says nothing. */
void sampling_rate__skip(struct sampling_rate *r, const struct rate_account *a);

/* What was in force since the last call, or the begin; from now on anew. */
struct rate_range sampling_rate__range(struct sampling_rate *r, uint64_t now_ns);

#endif /* GP_CAPTURE_POLICY_SAMPLING_RATE_H */
