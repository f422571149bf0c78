/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The values of a table's row for programs: as keys of a JSON object, as fields of CSV, or as CSV's
 * titles, which ignore the values. One list of columns serves all three. None of them is the first
 * of its row. Private to this room.
 */
#ifndef GP_OUTPUT_FORMAT_COLUMNS_H
#define GP_OUTPUT_FORMAT_COLUMNS_H

#include "base/buf.h"
#include "base/json_writer.h"
#include "timeline/analysis/table.h"

/* Where columns go; both are borrowed. */
struct columns {
	struct json_writer *json; /* NULL: CSV */
	struct buf *csv;
	bool titles; /* of CSV */
};

/* Adds one number under its name. */
void columns_u64(const struct columns *to, const char *name, uint64_t n);
void columns_i64(const struct columns *to, const char *name, int64_t n);

/* Adds nanoseconds as microseconds. */
void columns_us(const struct columns *to, const char *name, uint64_t ns);

/* Adds frames, innermost first: a list, or one field with semicolons between. With `backward` the
 * field begins with STACK_TEXT_BACKWARD. */
void columns_stack(const struct columns *to, const struct recording *rec, const uint32_t *frames,
		   size_t nr, bool backward);

/* Adds what the table's JSON and CSV have alike: times, memory and FLOPs, as far as captured. */
void columns_of_table(const struct columns *to, const struct table *table,
		      const struct table_row *r);

/* Adds estimates of the whole, each with its standard error, if that is known: a key "estimated",
 * or two columns each. Adds nothing for a table without estimates. */
void columns_estimates(const struct columns *to, const struct table *table,
		       const struct table_row *r);

/* Adds one estimate as a key; the value is divided by `scale`. */
void columns_estimate_json(struct json_writer *j, const char *name, const struct estimate *e,
			   double scale);

#endif /* GP_OUTPUT_FORMAT_COLUMNS_H */
