/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The table as CSV by RFC 4180: lines end with CR LF, and fields have quotes where they need them.
 * The columns are those of the table's JSON; what was not captured has no column.
 */
#include "output/format/columns.h"
#include "output/format/output.h"

#include "base/banned.h"

static void title_line(struct buf *out, const struct table *table, bool overloads, bool shapes)
{
	const struct columns to = {.csv = out, .titles = true};

	buf__str(out, overloads ? "name,overload" : "name");
	if (table->parts)
		buf__str(out, table->parts == TABLE_BY_RANK ? ",rank" : ",pid");
	buf__str(out, ",device,calls");
	columns_of_table(&to, table, &(struct table_row){.name = ""});
	columns_estimates(&to, table, &(struct table_row){.name = ""});
	if (shapes)
		buf__str(out, ",input_shapes");
	if (table->has_stacks)
		buf__str(out, ",stack");
	if (table->is_tree)
		buf__str(out, ",depth");
	buf__str(out, "\r\n");
}

static void row_line(struct buf *out, const struct table *table, const struct table_row *r,
		     bool overloads)
{
	const struct columns to = {.csv = out};

	buf__csv(out, r->name);
	if (overloads) {
		buf__char(out, ',');
		buf__csv(out, r->overload ? r->overload : "");
	}
	if (table->parts) {
		buf__char(out, ',');
		if (r->part >= 0)
			buf__i64(out, r->part);
	}
	buf__str(out, r->device == TABLE_CUDA ? ",CUDA," : ",CPU,");
	buf__u64(out, r->calls);
	columns_of_table(&to, table, r);
	columns_estimates(&to, table, r);
	if (r->shapes) {
		buf__char(out, ',');
		buf__csv(out, r->shapes);
	}
	if (table->has_stacks)
		columns_stack(&to, table->recording, r->stack, r->stack_nr, r->is_forward_stack);
	if (table->is_tree)
		columns_u64(&to, "depth", r->depth);
	buf__str(out, "\r\n");
}

int output_table_csv(struct sink *s, const struct table *table, long limit)
{
	bool overloads = table->rows.nr && table->rows.items[0].overload;
	struct buf out = {0};

	title_line(&out, table, overloads, table->rows.nr && table->rows.items[0].shapes);
	for (size_t i = 0; i < table->rows.nr && (limit < 0 || i < (size_t)limit); i++)
		row_line(&out, table, &table->rows.items[i], overloads);
	return sink__write_buf(s, &out);
}
