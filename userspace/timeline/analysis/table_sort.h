/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The orders of a table's rows. Private to this room.
 */
#ifndef GP_TIMELINE_ANALYSIS_TABLE_SORT_H
#define GP_TIMELINE_ANALYSIS_TABLE_SORT_H

#include "timeline/analysis/table.h"

/* The first event of a row; `index` is the row's. */
struct span {
	uint64_t start_ns;
	uint64_t end_ns;
	uint32_t index;
};

/* Sorts rows by start ascending, end descending. `when` has an entry per row and is left in any
 * order. 0 or -ENOMEM. */
int table_sort_by_time(struct table *table, struct span *when);

/* Sorts rows by a key, which is valid; stable, largest first. 0 or -ENOMEM. */
int table_sort_by_key(struct table *table, const char *key);

#endif /* GP_TIMELINE_ANALYSIS_TABLE_SORT_H */
