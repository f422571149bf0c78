/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Parts of the table as JSON that the table of samples has too. Private to this room.
 */
#ifndef GP_OUTPUT_SUMMARY_TABLE_JSON_H
#define GP_OUTPUT_SUMMARY_TABLE_JSON_H

#include "base/json_writer.h"
#include "timeline/analysis/table.h"

/* An array of rows, at most `limit` if that is not below 0. */
void table_json_rows(struct json_writer *j, const struct table *table, long limit);

/* An object: the windows that the rows' estimates come from. Only for a table that has some. */
void table_json_windows(struct json_writer *j, const struct table *table);

#endif /* GP_OUTPUT_SUMMARY_TABLE_JSON_H */
