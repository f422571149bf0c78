/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The values of a table's row for programs: as members of a JSON object, as fields of CSV, or as
 * CSV's titles, of which the values do not matter. So one list of columns serves all three. None is
 * the first of its row. Private to this room.
 */
#ifndef GP_OUTPUT_FORMAT_COLUMNS_H
#define GP_OUTPUT_FORMAT_COLUMNS_H

#include "base/buf.h"
#include "timeline/analysis/table.h"

enum columns_form { COLUMNS_JSON, COLUMNS_CSV, COLUMNS_TITLES };

/* Append one number under its name. */
void columns_u64(struct buf *out, enum columns_form form, const char *name, uint64_t n);
void columns_i64(struct buf *out, enum columns_form form, const char *name, int64_t n);

/* Nanoseconds, shown as microseconds. */
void columns_us(struct buf *out, enum columns_form form, const char *name, uint64_t ns);

/* Frames, innermost first: a list, or one field with semicolons between. With `backward` the field
 * begins with STACK_TEXT_BACKWARD. */
void columns_stack(struct buf *out, enum columns_form form, const struct recording *rec,
		   const uint32_t *frames, size_t nr, bool backward);

/* What the table's JSON and CSV have alike: times, memory and FLOPs, as far as captured. */
void columns_of_table(struct buf *out, enum columns_form form, const struct table *table,
		      const struct table_row *r);

/* Of the whole, each with its standard error, if that is known: a member "estimated", or two
 * columns each. Nothing of a table without estimates. */
void columns_estimates(struct buf *out, enum columns_form form, const struct table *table,
		       const struct table_row *r);

/* Appends one of them as a member of JSON, without a comma; what is shown is so many times less. */
void columns_estimate_json(struct buf *out, const char *name, const struct estimate *e,
			   double scale);

#endif /* GP_OUTPUT_FORMAT_COLUMNS_H */
