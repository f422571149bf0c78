/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The ranks of a distributed job beside each other: which collectives of theirs are one and the
 * same, who came last to each, and what ran while they communicated. Pure.
 *
 * A call is one rank's part in a collective: a kernel of NCCL, or the range that another backend
 * (gloo, MPI, UCC) marks. Calls are matched by their sequence, kind and size, and by time: of a
 * collective that joins all ranks nobody's part ends before everybody's has begun.
 */
#ifndef GP_TIMELINE_ANALYSIS_RANKS_H
#define GP_TIMELINE_ANALYSIS_RANKS_H

#include "timeline/model/timeline.h"

struct rank_call {
	uint64_t start_ns, end_ns;
	const char *kind;   /* "all_reduce"; one text for each kind: compare the addresses */
	const char *shapes; /* of its inputs, interned; NULL: not known */
	uint64_t elements;  /* as NCCL was told, 0: not known */
	uint64_t channel;   /* what keeps the order: a communicator, or what stands for one */
	uint32_t process;
	uint32_t thread; /* where it was called, TL_NONE: not known */
	uint32_t collective;
	bool by_gpu;	/* the times are a kernel's */
	bool joins_all; /* nobody's part ends before everybody's has begun */
	bool is_peer;	/* send or recv: no collective */
};

/* Calls of all ranks of a group: ranks.members[first] and on are their positions in ranks.calls. */
struct rank_collective {
	uint32_t first, nr;
	/* Of ranks.calls: who came last. TL_NONE: that cannot be told, as it does not join all or
	 * the clocks are not as exact. */
	uint32_t last;
	uint64_t spread_ns; /* from the first that came to the last */
	uint64_t behind_ns; /* from the last but one to the last: what that rank alone has cost */
};

/* One rank. */
struct rank_row {
	uint32_t process;
	int32_t rank;
	bool by_gpu; /* communication and computation are kernels, else CPU time */
	uint64_t calls_nr, peer_nr;
	uint64_t untimed_nr;	     /* seen to be called; when it was done is not known */
	uint64_t unmatched_nr;	     /* calls that found no partner in every other rank */
	uint64_t communication_ns;   /* when at least one call was going on */
	uint64_t computed_ns;	     /* of that, when an operator or kernel was too */
	uint64_t waited_ns;	     /* from when it came to when the last one came, added up */
	uint64_t last_nr, behind_ns; /* how often it came last, and behind_ns of those */
};

/* One step of the first rank that has steps. */
struct rank_step {
	uint64_t number, start_ns, end_ns;
	uint32_t collectives_nr;
	uint32_t last;	    /* of ranks.rows: the rank with the largest sum, TL_NONE: none */
	uint64_t behind_ns; /* that sum, of rank_collective.behind_ns */
};

struct ranks {
	VEC(struct rank_row) rows;		 /* by rank */
	VEC(struct rank_call) calls;		 /* by process, channel, start */
	VEC(struct rank_collective) collectives; /* by the start of their first member */
	VEC(uint32_t) members;
	VEC(struct rank_step) steps;
	uint64_t undecided_nr; /* collectives whose last could not be told */
	bool one_clock;	       /* else nothing is compared */
	uint64_t clock_error_ns;
};

/* 0 or -ENOMEM. `ranks` is to be given to ranks__done(), also after an error. The timeline must
 * outlive it. */
int ranks__find(const struct timeline *t, struct ranks *ranks);
void ranks__done(struct ranks *ranks);

/* Whether there are at least two processes that have a rank. */
bool ranks_there(const struct timeline *t);

/* How the clock of some processes goes against that of others. */
struct rank_clock {
	int64_t shift_ns;  /* to add to the times of the others */
	uint64_t error_ns; /* it is wrong by this at most */
	uint64_t nr;	   /* collectives that tell so */
	/* There is another way to match, which needs so much more shift; UINT64_MAX: none. */
	uint64_t next_ns;
};

/* Compares the collectives that the processes in `a` and those in `b` (one flag for each of
 * timeline.processes) have together, whose clocks are apart by at most `within_ns`. 0, -ENOENT if
 * nothing can be told, or -ENOMEM. */
int ranks_clock(const struct timeline *t, const bool *a, const bool *b, uint64_t within_ns,
		struct rank_clock *ret_clock);

#endif /* GP_TIMELINE_ANALYSIS_RANKS_H */
