/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The table as RFC 4180 has it: lines end with CR LF, quotes where a field needs them. The columns
 * are those of the table JSON, absent where not captured.
 */
#include "output/csv.h"
#include "output/output.h"
#include "output/stack_text.h"

#include <string.h>

#include "base/banned.h"

/* Control characters have no place in a line of a file that people look at in a terminal. */
void csv_text(struct buf *out, const char *text)
{
	bool quoted = strpbrk(text, ",\"") != NULL;

	if (quoted)
		buf__char(out, '"');
	for (; *text; text++) {
		if (*text == '"')
			buf__str(out, "\"\"");
		else if ((unsigned char)*text < 0x20 || *text == 0x7f)
			buf__char(out, '?');
		else
			buf__char(out, *text);
	}
	if (quoted)
		buf__char(out, '"');
}

static void bytes(struct buf *out, int64_t nr)
{
	buf__char(out, ',');
	buf__i64(out, nr);
}

static void microseconds(struct buf *out, uint64_t ns)
{
	buf__char(out, ',');
	buf__us(out, ns > INT64_MAX ? INT64_MAX : (int64_t)ns);
}

/* Innermost first, each frame with a semicolon before the next. */
static void stack_field(struct buf *out, const struct table *table, const struct table_row *r)
{
	struct buf text = {0};

	if (r->is_forward_stack)
		buf__str(&text, STACK_TEXT_BACKWARD ";");
	for (size_t i = 0; i < r->stack_nr; i++) {
		buf__str(&text, i ? ";" : "");
		stack_text_frame(&text, table->recording, r->stack[i]);
	}
	buf__char(out, ',');
	csv_text(out, text.bytes ? text.bytes : "");
	if (!out->err)
		out->err = buf__error(&text);
	buf__done(&text);
}

static void title_line(struct buf *out, const struct table *table, bool overloads, bool shapes)
{
	buf__str(out, overloads ? "name,overload" : "name");
	buf__str(out, table->has_ranks ? ",rank,device,calls" : ",device,calls");
	buf__str(out, ",self_cpu_us,cpu_total_us");
	if (table->has_cuda_time)
		buf__str(out, ",self_cuda_us,cuda_total_us");
	if (table->has_memory)
		buf__str(out, ",self_cpu_mem,cpu_mem");
	if (table->has_memory && table->has_cuda_memory)
		buf__str(out, ",self_cuda_mem,cuda_mem");
	if (table->has_flops)
		buf__str(out, ",flops,all_flops");
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
	csv_text(out, r->name);
	if (overloads) {
		buf__char(out, ',');
		csv_text(out, r->overload ? r->overload : "");
	}
	if (table->has_ranks) {
		buf__char(out, ',');
		if (r->rank >= 0)
			buf__i64(out, r->rank);
	}
	buf__str(out, r->device == TABLE_CUDA ? ",CUDA," : ",CPU,");
	buf__u64(out, r->calls);
	microseconds(out, r->self_cpu_ns);
	microseconds(out, r->cpu_total_ns);
	if (table->has_cuda_time) {
		microseconds(out, r->self_cuda_ns);
		microseconds(out, r->cuda_total_ns);
	}
	if (table->has_memory) {
		bytes(out, r->self_cpu_bytes);
		bytes(out, r->cpu_bytes);
	}
	if (table->has_memory && table->has_cuda_memory) {
		bytes(out, r->self_cuda_bytes);
		bytes(out, r->cuda_bytes);
	}
	if (table->has_flops) {
		buf__char(out, ',');
		buf__u64(out, r->flops);
		buf__char(out, ',');
		buf__u64(out, r->all_flops);
	}
	if (r->shapes) {
		buf__char(out, ',');
		csv_text(out, r->shapes);
	}
	if (table->has_stacks)
		stack_field(out, table, r);
	if (table->is_tree) {
		buf__char(out, ',');
		buf__u64(out, r->depth);
	}
	buf__str(out, "\r\n");
}

int output_table_csv(struct sink *s, const struct table *table, long limit)
{
	bool overloads = table->rows.nr && table->rows.items[0].overload;
	struct buf out = {0};
	int err;

	title_line(&out, table, overloads, table->rows.nr && table->rows.items[0].shapes);
	for (size_t i = 0; i < table->rows.nr && (limit < 0 || i < (size_t)limit); i++)
		row_line(&out, table, &table->rows.items[i], overloads);
	err = buf__error(&out);
	if (!err)
		err = sink__write(s, out.bytes, out.nr);
	buf__done(&out);
	return err;
}
