/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Several recordings as one: of several ranks, of several machines, or of one process at several
 * times.
 */
#ifndef GP_RECORDING_MERGE_H
#define GP_RECORDING_MERGE_H

#include "base/reason.h"
#include "recording/recording.h"

#include <stddef.h>

/* What is known of the parts' clocks beside each machine's time of day. */
struct merge_clocks {
	const int64_t *shifts_ns; /* one for each part, to be added to its time of day */
	uint64_t error_ns;	  /* after that they agree within this */
	uint64_t next_ns; /* unless they were apart by so much more; UINT64_MAX: in any case */
};

/*
 * Writes what is in `parts` into `w`, which stays the caller's to finish. Everything that counts
 * within one recording (processes, names, stacks, lists of inputs, instances of ops) is numbered
 * anew; a process that several parts hold (same machine since its start, same pid, same start)
 * becomes one. Counters add up. Recordings of one machine since its start share a clock; otherwise
 * times are moved by what each machine's time of day and `clocks` (NULL: nothing more) say, and the
 * key "clocks" of the result says "time of day" or "collectives" instead of "one". 0, -EINVAL if
 * two parts hold one process at the same time, -ENOSPC if there are more processes or ids than a
 * recording has, or a writer's or reader's error; each with a reason.
 */
int recording_merge(struct recording *const *parts, size_t parts_nr,
		    const struct merge_clocks *clocks, struct recording_writer *w,
		    struct reason *why);

#endif /* GP_RECORDING_MERGE_H */
