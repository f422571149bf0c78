/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The time between operators, in which a thread runs Python or NumPy, or waits: from the end of one
 * operator to the begin of the next. The Python stacks of the two show between which lines of a
 * function that was.
 */
#ifndef GP_TIMELINE_BUILD_OP_GAPS_H
#define GP_TIMELINE_BUILD_OP_GAPS_H

#include "timeline/model/timeline.h"

struct tl_gap {
	uint64_t start_ns, end_ns;
	uint32_t thread;
	/* Frames of the recording: where a function called what the operator before lay in, and
	 * where it called what the one after lies in. The same frame twice is a loop. */
	uint32_t frames[2];
};

struct tl_gaps {
	struct tl_gap *items;
	size_t nr, cap;
};

/* Appends the gaps of all threads whose operators have stacks. An annotation's end does not end a
 * gap, but its begin does. Gaps with a pause of the capture in them are left out. 0 or -ENOMEM. */
int op_gaps_find(const struct timeline *t, struct tl_gaps *gaps);

#endif /* GP_TIMELINE_BUILD_OP_GAPS_H */
