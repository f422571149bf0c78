/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Makes the rows of a table. Private to this room.
 */
#ifndef GP_TIMELINE_ANALYSIS_TABLE_ROWS_H
#define GP_TIMELINE_ANALYSIS_TABLE_ROWS_H

#include "timeline/analysis/table.h"

/* Makes rows of operators, API calls, memory and GPU work, by name and what else the options group
 * by, with estimates where the table has them, in order of first appearance; with options->between,
 * rows of the time between operators. 0 or -ENOMEM. */
int table_add_rows(const struct timeline *t, const struct table_options *options,
		   struct table *table);

/* Makes rows of modules, in tree order with options->tree. Of the options only `tree` and `only`
 * count. 0 or -ENOMEM. */
int table_add_modules(const struct timeline *t, const struct table_options *options,
		      struct table *table);

#endif /* GP_TIMELINE_ANALYSIS_TABLE_ROWS_H */
