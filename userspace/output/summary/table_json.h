/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Parts of the table as JSON that another document has, too. Private to this room.
 */
#ifndef GP_OUTPUT_SUMMARY_TABLE_JSON_H
#define GP_OUTPUT_SUMMARY_TABLE_JSON_H

#include "base/buf.h"
#include "timeline/analysis/table.h"

/* An array of rows, at most `limit` if that is not below 0. */
void table_json_rows(struct buf *out, const struct table *table, long limit);

/* An object: what the rows' estimates are from. Only of a table that has some. */
void table_json_windows(struct buf *out, const struct table *table);

#endif /* GP_OUTPUT_SUMMARY_TABLE_JSON_H */
