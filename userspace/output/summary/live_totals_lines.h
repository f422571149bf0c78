/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The parts of a tally for each other. Private to this room.
 */
#ifndef GP_OUTPUT_SUMMARY_LIVE_TOTALS_LINES_H
#define GP_OUTPUT_SUMMARY_LIVE_TOTALS_LINES_H

#include "output/summary/live_totals.h"

/* The row of this name in a view, made if need be: its index or -ENOMEM. */
int64_t totals_place(struct live_totals *y, enum totals_view view, const char *name);

/* Adds to a row, of the last interval and of the sums. */
void totals_add(struct live_totals *y, enum totals_view view, int64_t row, enum totals_value value,
		uint64_t n);

/* Adds what operators did to the lines that called them, if the timeline has stacks. What a
 * backward operator did counts at its forward operator's line. 0 or -ENOMEM. */
int totals_add_lines(struct live_totals *y, const struct timeline *t);

/* Adds operators as samples tell of them; nothing where there are none. 0 or -ENOMEM. */
int totals_add_sampled_ops(struct live_totals *y, const struct timeline *t);

/* Adds what samples tell of threads, to their rows. */
void totals_add_sampled_threads(struct live_totals *y, const struct timeline *t,
				const int64_t *rows);

#endif /* GP_OUTPUT_SUMMARY_LIVE_TOTALS_LINES_H */
