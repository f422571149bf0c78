/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Compares the ranks of a distributed job: which collectives match, who came last to each, and what
 * ran while they communicated. Pure.
 *
 * A call is one rank's part in a collective: a kernel of NCCL, or a range that another backend
 * (gloo, MPI, UCC) marks. Calls are matched by sequence, kind, size and time: in a collective that
 * joins all ranks, no rank's part ends before every rank's part has begun.
 */
#ifndef GP_TIMELINE_ANALYSIS_RANKS_H
#define GP_TIMELINE_ANALYSIS_RANKS_H

#include "timeline/model/timeline.h"

struct rank_call {
	uint64_t start_ns, end_ns;
	const char *kind;   /* "all_reduce"; one text for each kind: compare the addresses */
	const char *shapes; /* of its inputs, interned; NULL: not known */
	uint64_t elements;  /* as passed to NCCL, 0: not known */
	uint64_t channel;   /* within which order is kept: a communicator, or its substitute */
	uint32_t process;
	uint32_t thread; /* where it was called, TL_NONE: not known */
	uint32_t collective;
	bool by_gpu;	/* times are a kernel's */
	bool joins_all; /* no rank's part ends before every rank's part has begun */
	bool is_peer;	/* send or recv, not a collective */
};

/* Matching calls of all ranks of a group: ranks.members[first] and on are their positions in
 * ranks.calls. */
struct rank_collective {
	uint32_t first, nr;
	/* Of ranks.calls: the call that came last. TL_NONE: not known, as the collective does not
	 * join all ranks, or the clocks are too inexact. */
	uint32_t last;
	uint64_t spread_ns; /* from the first that came to the last */
	uint64_t behind_ns; /* from the last but one to the last: the cost of that rank alone */
};

/* One rank. */
struct rank_row {
	uint32_t process;
	int32_t rank;
	bool by_gpu; /* communication and computation are times of kernels, else CPU times */
	uint64_t calls_nr, peer_nr;
	uint64_t untimed_nr;	     /* calls without the time of their work */
	uint64_t unmatched_nr;	     /* calls that found no partner in every other rank */
	uint64_t communication_ns;   /* when at least one call was going on */
	uint64_t computed_ns;	     /* of that, when an operator or kernel was too */
	uint64_t waited_ns;	     /* summed, from its arrival to that of the last rank */
	uint64_t last_nr, behind_ns; /* how often it came last, and the sum of behind_ns then */
};

/* One step of the first rank that has steps. */
struct rank_step {
	uint64_t number, start_ns, end_ns;
	uint32_t collectives_nr;
	uint32_t last;	    /* of ranks.rows: the rank with the largest sum, TL_NONE: none */
	uint64_t behind_ns; /* its sum of rank_collective.behind_ns */
};

struct ranks {
	VEC(struct rank_row) rows;		 /* by rank */
	VEC(struct rank_call) calls;		 /* by process, channel, start */
	VEC(struct rank_collective) collectives; /* by the start of their first member */
	VEC(uint32_t) members;
	VEC(struct rank_step) steps;
	uint64_t undecided_nr; /* collectives whose last rank is not known */
	bool one_clock;	       /* else nothing is compared */
	uint64_t clock_error_ns;
};

/* Fills `ranks`. 0 or -ENOMEM. Call ranks__done() also after an error. The timeline must outlive
 * it. */
int ranks__find(const struct timeline *t, struct ranks *ranks);
void ranks__done(struct ranks *ranks);

/* Whether at least two processes have a rank. */
bool ranks_there(const struct timeline *t);

/* The clock of some processes relative to that of others. */
struct rank_clock {
	int64_t shift_ns;  /* add it to the times of the others */
	uint64_t error_ns; /* the shift is wrong by at most this */
	uint64_t nr;	   /* collectives that it is from */
	/* Another match needs this much more shift; UINT64_MAX: there is none. */
	uint64_t next_ns;
};

/* Compares the collectives that the processes in `a` share with those in `b` (one flag for each of
 * timeline.processes), whose clocks are at most `within_ns` apart. 0, -ENOENT if nothing can be
 * concluded, or -ENOMEM. */
int ranks_clock(const struct timeline *t, const bool *a, const bool *b, uint64_t within_ns,
		struct rank_clock *ret_clock);

#endif /* GP_TIMELINE_ANALYSIS_RANKS_H */
