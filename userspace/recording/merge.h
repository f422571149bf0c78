/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Merges recordings into one: of several ranks, of several machines, or of one process at several
 * times.
 */
#ifndef GP_RECORDING_MERGE_H
#define GP_RECORDING_MERGE_H

#include "base/reason.h"
#include "recording/recording.h"

#include <stddef.h>

/* What is known about the parts' clocks beyond each machine's time of day. */
struct merge_clocks {
	const int64_t *shifts_ns; /* one per part: add it to the part's time of day */
	uint64_t error_ns;	  /* with the shifts, clocks agree within this */
	uint64_t next_ns; /* unless they are apart by this much more; UINT64_MAX: in any case */
};

/*
 * Writes the contents of `parts` to `w`, which the caller finishes. Everything that is numbered
 * within one recording (processes, names, stacks, lists of inputs, instances of ops) gets new
 * numbers. A process that several parts hold (same machine since its start, same pid, same start)
 * becomes one. Counters add up.
 *
 * Recordings of one machine since its start share a clock. The times of others are shifted by each
 * machine's time of day and by `clocks` (NULL: nothing more is known); the result's key "clocks"
 * then says "time of day" or "collectives" instead of "one".
 *
 * 0, -EINVAL if two parts hold one process at the same time, -ENOSPC if there are more processes or
 * ids than a recording can have, or an error of the writer or a reader; each with a reason.
 */
int recording_merge(struct recording *const *parts, size_t parts_nr,
		    const struct merge_clocks *clocks, struct recording_writer *w,
		    struct reason *why);

#endif /* GP_RECORDING_MERGE_H */
