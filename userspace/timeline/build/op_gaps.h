/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The time between operators: what a thread does in Python, NumPy or waiting, between the end of
 * one operator and the begin of the next. The Python stacks of the two say from which line of a
 * function to which one it came.
 */
#ifndef GP_TIMELINE_BUILD_OP_GAPS_H
#define GP_TIMELINE_BUILD_OP_GAPS_H

#include "timeline/model/timeline.h"

struct tl_gap {
	uint64_t start_ns, end_ns;
	uint32_t thread;
	/* The recording's: where one function called what the operator before lay in, and where it
	 * called what the one after lies in. The same frame twice: a loop. */
	uint32_t frames[2];
};

struct tl_gaps {
	struct tl_gap *items;
	size_t nr, cap;
};

/* Appends those of all threads whose operators have stacks. Ranges end no gap, but their begins do;
 * what a pause of the capture lies in is left out. 0 or -ENOMEM. */
int op_gaps_find(const struct timeline *t, struct tl_gaps *gaps);

#endif /* GP_TIMELINE_BUILD_OP_GAPS_H */
