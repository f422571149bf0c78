/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Finds the calls of collectives in a timeline, and which calls of different ranks belong together.
 * Private to this room.
 */
#ifndef GP_TIMELINE_ANALYSIS_RANK_CALLS_H
#define GP_TIMELINE_ANALYSIS_RANK_CALLS_H

#include "timeline/analysis/ranks.h"

/* Fills ranks->calls, and the counts of ranks->rows, which exist. 0 or -ENOMEM. */
int rank_calls_find(const struct timeline *t, struct ranks *ranks);

/* The row of a process, or NULL. */
struct rank_row *rank_calls_row(const struct ranks *ranks, uint32_t process);

/* Sums up how long each rank communicated, and how much of that it also computed. Call after
 * rank_calls_find(). 0 or -ENOMEM. */
int rank_calls_overlap(const struct timeline *t, struct ranks *ranks);

/* Whether this kernel is one of NCCL's. */
bool rank_calls_is_kernel(const struct tl_gpu *work);

/* Whether an op of this name is a call of a backend that marks its work with ranges. */
bool rank_calls_is_range(const char *name);

/* Calls of one process that keep their order: calls[first] and on. */
struct rank_channel {
	uint32_t process;
	uint32_t first, nr;
	bool taken;
	int64_t offset; /* its call n matches call n - offset of the group's first channel */
	int64_t next;	/* calls before this one are matched, or have no match */
};

/* How the calls of one channel match those of another. */
struct rank_fit {
	int64_t offset; /* number of b's call minus that of the matching call of a */
	uint32_t matched_nr, compared_nr;
	/* Bounds of what may be added to b's times so that all matched calls overlap; low > high:
	 * impossible. */
	int64_t low_ns, high_ns;
};

/* Finds the fit with the most matches, where clocks differ by at most `error_ns`. False: none
 * matches more than half of the calls compared. */
bool rank_channels_fit(const struct rank_call *calls, const struct rank_channel *a,
		       const struct rank_channel *b, uint64_t error_ns, struct rank_fit *ret_fit);

/* Finds, where clocks may differ by `within_ns`, far more than the distance of calls, the fit that
 * needs the least shift of those in which every call matches. *ret_next_ns: how much more shift the
 * next such fit needs. False: none. */
bool rank_channels_align(const struct rank_call *calls, const struct rank_channel *a,
			 const struct rank_channel *b, uint64_t within_ns, struct rank_fit *ret_fit,
			 uint64_t *ret_next_ns);

/* Finds the calls of a that have one of b at this offset: *ret_from to below *ret_to. */
void rank_channels_overlap(const struct rank_channel *a, const struct rank_channel *b,
			   int64_t offset, int64_t *ret_from, int64_t *ret_to);

/* How much later a is than b; below 0: earlier. */
static inline int64_t ns_between(uint64_t a, uint64_t b)
{
	return (int64_t)(a - b);
}

/* Whether two calls can be parts of one collective, by their known kind and size. */
bool rank_calls_alike(const struct rank_call *a, const struct rank_call *b);

#endif /* GP_TIMELINE_ANALYSIS_RANK_CALLS_H */
