/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What the table as text has more where it is estimated from windows: the columns 'est', of the
 * whole, where all others are of the windows alone. Of a table without estimates nothing is
 * written. Private to this room.
 */
#ifndef GP_OUTPUT_SUMMARY_TABLE_ESTIMATES_H
#define GP_OUTPUT_SUMMARY_TABLE_ESTIMATES_H

#include "base/buf.h"
#include "timeline/analysis/table.h"

/* How many columns of TEXT_COLUMN_WIDTH. */
size_t table_estimate_columns(const struct table *table);

/* Their titles, and one row's values; `unit` is that of text_time(). */
void table_estimate_titles(struct buf *out, const struct table *table);
void table_estimate_cells(struct buf *out, const struct table *table, const struct table_row *r,
			  const char *unit);

/* The line that says what the estimates are from, and the one of all CPU time. */
void table_estimate_origin(struct buf *out, const struct table *table);
void table_estimate_total(struct buf *out, const struct table *table, const char *unit);

#endif /* GP_OUTPUT_SUMMARY_TABLE_ESTIMATES_H */
