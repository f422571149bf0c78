/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Which calls of collectives a timeline holds, and which of different ranks belong together.
 * Private to this room.
 */
#ifndef GP_TIMELINE_ANALYSIS_RANK_CALLS_H
#define GP_TIMELINE_ANALYSIS_RANK_CALLS_H

#include "timeline/analysis/ranks.h"

/* Fills ranks->calls and the counts of ranks->rows, which are there. 0 or -ENOMEM. */
int rank_calls_find(const struct timeline *t, struct ranks *ranks);

/* The row of a process, or NULL. */
struct rank_row *rank_calls_row(const struct ranks *ranks, uint32_t process);

/* How long each rank communicated, and how much of that it computed too. The calls are found. 0 or
 * -ENOMEM. */
int rank_calls_overlap(const struct timeline *t, struct ranks *ranks);

/* Whether this kernel is one of NCCL's. */
bool rank_calls_is_kernel(const struct tl_gpu *work);

/* Whether an op of this name is a call of a backend that is told by its range. */
bool rank_calls_is_range(const char *name);

/* The calls of one process that keep one order among themselves: calls[first] and on. */
struct rank_channel {
	uint32_t process;
	uint32_t first, nr;
	bool taken;
	int64_t offset; /* its call n is the group's first channel's call n - offset */
	int64_t next;	/* calls before this one have found their collective, or have none */
};

/* How the calls of one channel fit those of another. */
struct rank_fit {
	int64_t offset; /* b's number less a's of what is one collective */
	uint32_t matched_nr, compared_nr;
	/* What can be added to b's times so that all that joins does; low > high: nothing. */
	int64_t low_ns, high_ns;
};

/* The fit with most matches, where clocks are apart by at most `error_ns`. False: none has more
 * than half of what was compared. */
bool rank_channels_fit(const struct rank_call *calls, const struct rank_channel *a,
		       const struct rank_channel *b, uint64_t error_ns, struct rank_fit *ret_fit);

/* Where clocks may be apart by `within_ns`, far more than calls are: of the fits in which all
 * matches, that which needs the least shift. *ret_next_ns is by how much more the next one needs.
 * False: there is none. */
bool rank_channels_align(const struct rank_call *calls, const struct rank_channel *a,
			 const struct rank_channel *b, uint64_t within_ns, struct rank_fit *ret_fit,
			 uint64_t *ret_next_ns);

/* The numbers *ret_from to below *ret_to of a's calls that have one of b's at this offset. */
void rank_channels_overlap(const struct rank_channel *a, const struct rank_channel *b,
			   int64_t offset, int64_t *ret_from, int64_t *ret_to);

/* How much later than b a is; below 0: earlier. */
static inline int64_t ns_between(uint64_t a, uint64_t b)
{
	return (int64_t)(a - b);
}

/* Two calls can be parts of one collective, by what is known of their kind and size. */
bool rank_calls_alike(const struct rank_call *a, const struct rank_call *b);

#endif /* GP_TIMELINE_ANALYSIS_RANK_CALLS_H */
