/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The parts of live totals: the rows, and what adds to them. Private to this room.
 */
#ifndef GP_OUTPUT_SUMMARY_LIVE_TOTALS_PARTS_H
#define GP_OUTPUT_SUMMARY_LIVE_TOTALS_PARTS_H

#include "output/summary/live_totals.h"

/* ---- rows: live_totals_rows.c ---- */

/* The name as one line of UTF-8; it lives as long as the totals. NULL: out of memory. */
const char *totals_keep(struct live_totals *y, const char *name);

/* The row of this name in a view, made if there is none: its index or -ENOMEM. */
int64_t totals_row_of(struct live_totals *y, enum totals_view view, const char *name);

/* The same of a thread. */
int64_t totals_thread_row(struct live_totals *y, int64_t pid, uint32_t tid, const char *comm);

/* Adds `n` to a row's value, in the last interval and in the sums. */
void totals_add(struct live_totals *y, enum totals_view view, int64_t row, enum totals_value value,
		uint64_t n);

/* ---- parts ---- */

/* Adds what operators did to the lines that called them, if the timeline has stacks. What a
 * backward operator did counts at its forward operator's line. 0 or -ENOMEM. */
int totals_add_lines(struct live_totals *y, const struct timeline *t);

/* Adds operators from samples, if there are any. 0 or -ENOMEM. */
int totals_add_sampled_ops(struct live_totals *y, const struct timeline *t);

/* Adds what samples show of threads to `rows`, which has a row for each thread. */
void totals_add_sampled_threads(struct live_totals *y, const struct timeline *t,
				const int64_t *rows);

#endif /* GP_OUTPUT_SUMMARY_LIVE_TOTALS_PARTS_H */
