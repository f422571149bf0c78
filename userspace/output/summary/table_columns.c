/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Titles and values as PyTorch 2.6 and later print them. Times go through doubles of microseconds
 * as there, so that the last digit rounds the same way.
 */
#include "output/summary/table_columns.h"

#include "output/format/stack_text.h"
#include "output/format/text_cells.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/banned.h"

/* ---- which are there ---- */

static bool always(const struct table *t)
{
	(void)t;
	return true;
}

static bool with_overloads(const struct table *t)
{
	for (size_t i = 0; i < t->rows.nr; i++)
		if (t->rows.items[i].overload && *t->rows.items[i].overload)
			return true;
	return false;
}

static bool with_parts(const struct table *t)
{
	return t->parts != TABLE_WHOLE;
}

static bool with_cuda(const struct table *t)
{
	return t->has_cuda_time;
}

static bool with_memory(const struct table *t)
{
	return t->has_memory;
}

static bool with_cuda_memory(const struct table *t)
{
	return t->has_memory && t->has_cuda_memory;
}

/* Any row has inputs. */
static bool with_shapes(const struct table *t)
{
	for (size_t i = 0; i < t->rows.nr; i++)
		if (t->rows.items[i].shapes && line_characters(t->rows.items[i].shapes) > 2)
			return true;
	return false;
}

static bool with_flops(const struct table *t)
{
	return t->least_flops > 0;
}

static bool with_all_flops(const struct table *t)
{
	return t->least_all_flops > 0;
}

static bool with_estimates(const struct table *t)
{
	return t->has_estimates;
}

static bool with_cuda_estimates(const struct table *t)
{
	return t->has_estimates && t->has_cuda_time;
}

static bool with_stacks(const struct table *t)
{
	for (size_t i = 0; i < t->rows.nr; i++)
		if (t->rows.items[i].stack_nr)
			return true;
	return false;
}

/* ---- values ---- */

static uint64_t u64_at(const struct table_row *r, const struct table_column *c)
{
	uint64_t n;

	memcpy(&n, (const char *)r + c->at, sizeof(n));
	return n;
}

static const char *text_at(const struct table_row *r, const struct table_column *c)
{
	const char *text;

	memcpy(&text, (const char *)r + c->at, sizeof(text));
	return text;
}

static void text_value(struct buf *out, const struct table *table, const struct table_row *r,
		       const struct table_column *c, const char *unit)
{
	const char *text = text_at(r, c);

	(void)table;
	(void)unit;
	buf__str(out, text ? text : "");
}

static void shapes_value(struct buf *out, const struct table *table, const struct table_row *r,
			 const struct table_column *c, const char *unit)
{
	(void)table;
	(void)c;
	(void)unit;
	buf__str(out, r->shapes ? r->shapes : "[]");
}

static void part_value(struct buf *out, const struct table *table, const struct table_row *r,
		       const struct table_column *c, const char *unit)
{
	(void)table;
	(void)c;
	(void)unit;
	if (r->part < 0)
		buf__char(out, '-');
	else
		buf__i64(out, r->part);
}

static void time_value(struct buf *out, const struct table *table, const struct table_row *r,
		       const struct table_column *c, const char *unit)
{
	(void)table;
	buf__str(out, text_time((double)u64_at(r, c) / 1000.0, unit).text);
}

static void average_value(struct buf *out, const struct table *table, const struct table_row *r,
			  const struct table_column *c, const char *unit)
{
	double us = (double)u64_at(r, c) / 1000.0;

	(void)table;
	buf__str(out, text_time(r->calls ? us / (double)r->calls : 0.0, unit).text);
}

static void percent(struct buf *out, uint64_t ns, uint64_t total_ns)
{
	if (total_ns)
		buf__printf(out, "%.2f%%",
			    (double)ns / 1000.0 * 100.0 / ((double)total_ns / 1000.0));
	else
		buf__str(out, "NaN");
}

static void cpu_percent_value(struct buf *out, const struct table *table, const struct table_row *r,
			      const struct table_column *c, const char *unit)
{
	(void)unit;
	percent(out, u64_at(r, c), table->self_cpu_total_ns);
}

static void cpu_total_percent_value(struct buf *out, const struct table *table,
				    const struct table_row *r, const struct table_column *c,
				    const char *unit)
{
	if (r->is_async)
		buf__char(out, '0');
	else
		cpu_percent_value(out, table, r, c, unit);
}

static void cuda_percent_value(struct buf *out, const struct table *table,
			       const struct table_row *r, const struct table_column *c,
			       const char *unit)
{
	(void)unit;
	percent(out, u64_at(r, c), table->self_cuda_total_ns);
}

static void bytes_value(struct buf *out, const struct table *table, const struct table_row *r,
			const struct table_column *c, const char *unit)
{
	static const struct {
		double size;
		const char *unit;
	} units[] = {{1024.0 * 1024 * 1024, "GB"}, {1024.0 * 1024, "MB"}, {1024.0, "KB"}};
	int64_t bytes = (int64_t)u64_at(r, c);
	double size = bytes < 0 ? -(double)bytes : (double)bytes;

	(void)table;
	(void)unit;
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		if (size < units[i].size)
			continue;
		buf__printf(out, "%.2f %s", (double)bytes / units[i].size, units[i].unit);
		return;
	}
	buf__printf(out, "%lld B", (long long)bytes);
}

static void calls_value(struct buf *out, const struct table *table, const struct table_row *r,
			const struct table_column *c, const char *unit)
{
	(void)table;
	(void)c;
	(void)unit;
	buf__u64(out, r->calls);
}

/* ---- operations ---- */

struct flops_unit {
	const char *name;
	double scale;
};

/* The unit in which the least number above zero is at least 1, as torch.profiler chooses it. */
static struct flops_unit flops_unit(uint64_t least)
{
	static const char *const names[] = {"FLOPs",  "KFLOPs", "MFLOPs",
					    "GFLOPs", "TFLOPs", "PFLOPs"};
	double third = log10((double)least) / 3.0;
	int i = third < 0 ? 0 : third > 5 ? 5 : (int)third;

	return (struct flops_unit){names[i], pow(10, -3.0 * i)};
}

static void flops(struct buf *out, uint64_t flops, uint64_t least)
{
	if (flops)
		buf__printf(out, "%8.3f", (double)flops * flops_unit(least).scale);
	else
		buf__str(out, "--");
}

static void flops_value(struct buf *out, const struct table *table, const struct table_row *r,
			const struct table_column *c, const char *unit)
{
	(void)c;
	(void)unit;
	flops(out, r->flops, table->least_flops);
}

static void all_flops_value(struct buf *out, const struct table *table, const struct table_row *r,
			    const struct table_column *c, const char *unit)
{
	(void)c;
	(void)unit;
	flops(out, r->all_flops, table->least_all_flops);
}

/* Operations a nanosecond are thousands of millions a second. */
static void flops_rate_value(struct buf *out, const struct table *table, const struct table_row *r,
			     const struct table_column *c, const char *unit)
{
	uint64_t ns = r->cuda_total_ns ? r->cuda_total_ns : r->cpu_total_ns;

	(void)table;
	(void)c;
	(void)unit;
	if (r->all_flops && ns)
		buf__printf(out, "%.3f", (double)r->all_flops / (double)ns);
	else
		buf__str(out, "--");
}

/* ---- estimates of the whole ---- */

static void estimate_value(struct buf *out, const struct table *table, const struct table_row *r,
			   const struct table_column *c, const char *unit)
{
	const struct estimate *e = &r->estimates[c->at];

	(void)table;
	if (c->at == ESTIMATE_CALLS)
		buf__printf(out, "%.0f", e->value);
	else
		buf__str(out, text_time(e->value / 1000, unit).text);
}

static void error_value(struct buf *out, const struct table *table, const struct table_row *r,
			const struct table_column *c, const char *unit)
{
	const struct estimate *e = &r->estimates[c->at];

	(void)table;
	if (isnan(e->error))
		buf__char(out, '?');
	else if (c->at == ESTIMATE_CALLS)
		buf__printf(out, e->error < 10 ? "%.1f" : "%.0f", e->error);
	else
		buf__str(out, text_time(e->error / 1000, unit).text);
}

/* ---- where from ---- */

void table_column_frame(struct buf *out, const struct table *table, const struct table_row *r,
			size_t i)
{
	if (i >= r->stack_nr)
		return;
	stack_text_frame(out, table->recording, r->stack[i]);
	/* At the end, which is what is shown of a long frame. */
	if (!i && r->is_forward_stack)
		buf__str(out, " " STACK_TEXT_BACKWARD);
}

static void source_value(struct buf *out, const struct table *table, const struct table_row *r,
			 const struct table_column *c, const char *unit)
{
	(void)c;
	(void)unit;
	table_column_frame(out, table, r, 0);
}

/* ---- the list ---- */

/* clang-format off */
static const struct table_column columns[] = {
	{"Name", NULL, TABLE_NAME, 0, always, text_value, offsetof(struct table_row, name)},
	{"Overload Name", NULL, TABLE_NAME, 0, with_overloads, text_value, offsetof(struct table_row, overload)},
	{NULL, NULL, TABLE_NUMBER, 0, with_parts, part_value, 0},
	{"Self CPU %", NULL, TABLE_NUMBER, 9, always, cpu_percent_value, offsetof(struct table_row, self_cpu_ns)},
	{"Self CPU", "self_cpu_time_total", TABLE_NUMBER, 0, always, time_value, offsetof(struct table_row, self_cpu_ns)},
	{"CPU total %", NULL, TABLE_NUMBER, 16, always, cpu_total_percent_value, offsetof(struct table_row, cpu_total_ns)},
	{"CPU total", "cpu_time_total", TABLE_NUMBER, 6, always, time_value, offsetof(struct table_row, cpu_total_ns)},
	{"CPU time avg", "cpu_time", TABLE_NUMBER, 18, always, average_value, offsetof(struct table_row, cpu_total_ns)},
	{"Self CUDA", "self_cuda_time_total", TABLE_NUMBER, 0, with_cuda, time_value, offsetof(struct table_row, self_cuda_ns)},
	{"Self CUDA %", NULL, TABLE_NUMBER, 15, with_cuda, cuda_percent_value, offsetof(struct table_row, self_cuda_ns)},
	{"CUDA total", "cuda_time_total", TABLE_NUMBER, 7, with_cuda, time_value, offsetof(struct table_row, cuda_total_ns)},
	{"CUDA time avg", "cuda_time", TABLE_NUMBER, 17, with_cuda, average_value, offsetof(struct table_row, cuda_total_ns)},
	{"CPU Mem", "cpu_memory_usage", TABLE_NUMBER, 12, with_memory, bytes_value, offsetof(struct table_row, cpu_bytes)},
	{"Self CPU Mem", "self_cpu_memory_usage", TABLE_NUMBER, 5, with_memory, bytes_value, offsetof(struct table_row, self_cpu_bytes)},
	{"CUDA Mem", "cuda_memory_usage", TABLE_NUMBER, 11, with_cuda_memory, bytes_value, offsetof(struct table_row, cuda_bytes)},
	{"Self CUDA Mem", "self_cuda_memory_usage", TABLE_NUMBER, 4, with_cuda_memory, bytes_value, offsetof(struct table_row, self_cuda_bytes)},
	{"# of Calls", "count", TABLE_NUMBER, 2, always, calls_value, 0},
	{"Input Shapes", NULL, TABLE_SHAPES, 0, with_shapes, shapes_value, 0},
	{NULL, "flops", TABLE_NUMBER, 3, with_flops, flops_value, 0},
	{NULL, "all_flops", TABLE_NUMBER, 13, with_all_flops, all_flops_value, 0},
	{"GFLOP/s", NULL, TABLE_NUMBER, 14, with_all_flops, flops_rate_value, 0},
	{"est Self CPU", NULL, TABLE_NUMBER, 1, with_estimates, estimate_value, ESTIMATE_SELF_CPU_NS},
	{"+/-", NULL, TABLE_NUMBER, 1, with_estimates, error_value, ESTIMATE_SELF_CPU_NS},
	{"est SelfCUDA", NULL, TABLE_NUMBER, 8, with_cuda_estimates, estimate_value, ESTIMATE_SELF_CUDA_NS},
	{"+/-", NULL, TABLE_NUMBER, 8, with_cuda_estimates, error_value, ESTIMATE_SELF_CUDA_NS},
	{"est Calls", NULL, TABLE_NUMBER, 10, with_estimates, estimate_value, ESTIMATE_CALLS},
	{"+/-", NULL, TABLE_NUMBER, 10, with_estimates, error_value, ESTIMATE_CALLS},
	{"Source Location", NULL, TABLE_SOURCE, 0, with_stacks, source_value, 0},
};
/* clang-format on */

_Static_assert(sizeof(columns) / sizeof(*columns) == TABLE_COLUMNS_MAX, "the list and its size");

size_t table_columns_of(const struct table *table,
			const struct table_column *ret[TABLE_COLUMNS_MAX])
{
	size_t nr = 0;

	for (size_t i = 0; i < TABLE_COLUMNS_MAX; i++)
		if (columns[i].is_there(table))
			ret[nr++] = &columns[i];
	return nr;
}

void table_column_title(struct buf *out, const struct table *table, const struct table_column *c)
{
	if (c->title)
		buf__str(out, c->title);
	else if (c->value == part_value)
		buf__str(out, table->parts == TABLE_BY_RANK ? "Rank" : "PID");
	else if (c->value == flops_value)
		buf__printf(out, "Total %s", flops_unit(table->least_flops).name);
	else
		buf__printf(out, "All %s", flops_unit(table->least_all_flops).name);
}
