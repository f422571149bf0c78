/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * key_averages().table() as PyTorch 2.6 and later print it. Times go through doubles of
 * microseconds as there, so that the last digit rounds the same way.
 */
#include "output/format/flops_text.h"
#include "output/format/output.h"
#include "output/format/stack_text.h"
#include "output/format/text_cells.h"
#include "output/summary/table_estimates.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/banned.h"

#define NAME_WIDTH_MAX	 55
#define SHAPES_WIDTH_MAX 80
#define COLUMNS_MAX	 16
#define SOURCE_WIDTH_MAX 75

struct text {
	const struct table *table;
	const struct output_table_options *options;
	struct buf out;
	bool overloads;
	size_t name_width;
	size_t shapes_width;  /* 0: no such column */
	size_t columns;	      /* of TEXT_COLUMN_WIDTH, before the shapes */
	size_t flops_columns; /* the same, behind the shapes */
	size_t more_columns;  /* the same, behind those: estimates */
	size_t source_width;  /* of the last column, 0: there is none */
	const struct recording *recording;
};

/* ---- cells ---- */

/* In a tree names stand on the left, those of children further in. */
static void tree_cell(struct text *t, const char *name, uint32_t depth)
{
	size_t indent = 2UL * depth < t->name_width ? 2UL * depth : t->name_width;
	size_t nr = line_characters(name), room = t->name_width - indent;

	text_spaces(&t->out, indent);
	buf__line_part(&t->out, name, room);
	text_spaces(&t->out, (nr < room ? room - nr : 0) + 2);
}

/* Names of the greatest width or nearly so are cut. */
static void name_cell(struct text *t, const char *name)
{
	size_t max = t->options->max_name_width > 0 ? (size_t)t->options->max_name_width
						    : NAME_WIDTH_MAX;
	size_t nr = line_characters(name), keep = max > 3 ? max - 3 : 0;
	bool cut = nr >= keep;
	size_t shown = cut ? keep + 3 : nr;

	if (shown < t->name_width)
		text_spaces(&t->out, t->name_width - shown);
	buf__line_part(&t->out, name, cut ? keep : nr);
	buf__str(&t->out, cut ? "...  " : "  ");
}

static void shapes_cell(struct text *t, const char *shapes)
{
	size_t nr = line_characters(shapes), shown = nr < t->shapes_width ? nr : t->shapes_width;

	text_spaces(&t->out, t->shapes_width - shown);
	buf__line_part(&t->out, shapes, shown);
	buf__str(&t->out, "  ");
}

static void cell(struct text *t, const char *value)
{
	text_cell(&t->out, value, TEXT_COLUMN_WIDTH);
}

/* ---- values ---- */

struct flops_unit {
	const char *name;
	double scale;
};

static struct text_value time_value(const struct text *t, double us)
{
	return text_time(us, t->options->time_unit);
}

static void time_cell(struct text *t, uint64_t ns)
{
	cell(t, time_value(t, (double)ns / 1000.0).text);
}

static void average_cell(struct text *t, uint64_t ns, uint64_t calls)
{
	cell(t, time_value(t, calls ? (double)ns / 1000.0 / (double)calls : 0.0).text);
}

static void percent_cell(struct text *t, uint64_t ns, uint64_t total_ns)
{
	char text[32] = "NaN";

	if (total_ns)
		(void)snprintf(text, sizeof(text), "%.2f%%",
			       (double)ns / 1000.0 * 100.0 / ((double)total_ns / 1000.0));
	cell(t, text);
}

static void bytes_cell(struct text *t, int64_t bytes)
{
	static const struct {
		double size;
		const char *unit;
	} units[] = {{1024.0 * 1024 * 1024, "GB"}, {1024.0 * 1024, "MB"}, {1024.0, "KB"}};
	double size = bytes < 0 ? -(double)bytes : (double)bytes;
	char text[40];

	(void)snprintf(text, sizeof(text), "%lld B", (long long)bytes);
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		if (size < units[i].size)
			continue;
		(void)snprintf(text, sizeof(text), "%.2f %s", (double)bytes / units[i].size,
			       units[i].unit);
		break;
	}
	cell(t, text);
}

/* The unit in which the least number above zero is at least 1, as torch.profiler chooses it. */
static struct flops_unit flops_unit(uint64_t least)
{
	static const char *const names[] = {"FLOPs",  "KFLOPs", "MFLOPs",
					    "GFLOPs", "TFLOPs", "PFLOPs"};
	double third = log10((double)least) / 3.0;
	int i = third < 0 ? 0 : third > 5 ? 5 : (int)third;

	return (struct flops_unit){names[i], pow(10, -3.0 * i)};
}

static void flops_cell(struct text *t, uint64_t flops, uint64_t least)
{
	char text[40] = "--";

	if (flops)
		(void)snprintf(text, sizeof(text), "%8.3f",
			       (double)flops * flops_unit(least).scale);
	cell(t, text);
}

/* Operations a nanosecond are thousands of millions a second. */
static void flops_rate_cell(struct text *t, const struct table_row *r)
{
	uint64_t ns = r->cuda_total_ns ? r->cuda_total_ns : r->cpu_total_ns;
	char text[40] = "--";

	if (r->all_flops && ns)
		(void)snprintf(text, sizeof(text), "%.3f", (double)r->all_flops / (double)ns);
	cell(t, text);
}

static void flops_cells(struct text *t, const struct table_row *r)
{
	if (t->table->least_flops)
		flops_cell(t, r->flops, t->table->least_flops);
	if (!t->table->least_all_flops)
		return;
	flops_cell(t, r->all_flops, t->table->least_all_flops);
	flops_rate_cell(t, r);
}

/* ---- lines ---- */

static void separator(struct text *t)
{
	size_t names = t->overloads ? 2 : 1;

	for (size_t i = 0; i < names + t->columns; i++)
		text_rule(&t->out, i < names ? t->name_width : TEXT_COLUMN_WIDTH);
	if (t->shapes_width)
		text_rule(&t->out, t->shapes_width);
	for (size_t i = 0; i < t->flops_columns + t->more_columns; i++)
		text_rule(&t->out, TEXT_COLUMN_WIDTH);
	if (t->source_width)
		text_rule(&t->out, t->source_width);
	buf__char(&t->out, '\n');
}

/* Across all columns, without the last one's gap. */
static void rule(struct text *t)
{
	size_t names = t->overloads ? 2 : 1;
	size_t width = names * (t->name_width + 2) + t->columns * (TEXT_COLUMN_WIDTH + 2) - 2;

	width += t->shapes_width ? t->shapes_width + 2 : 0;
	width += (t->flops_columns + t->more_columns) * (TEXT_COLUMN_WIDTH + 2);
	width += t->source_width ? t->source_width + 2 : 0;
	while (width-- > 0)
		buf__char(&t->out, '=');
	buf__char(&t->out, '\n');
}

static size_t column_titles(const struct table *table, const char *titles[COLUMNS_MAX])
{
	size_t nr = 0;

	if (table->parts)
		titles[nr++] = table->parts == TABLE_BY_RANK ? "Rank" : "PID";
	titles[nr++] = "Self CPU %";
	titles[nr++] = "Self CPU";
	titles[nr++] = "CPU total %";
	titles[nr++] = "CPU total";
	titles[nr++] = "CPU time avg";
	if (table->has_cuda_time) {
		titles[nr++] = "Self CUDA";
		titles[nr++] = "Self CUDA %";
		titles[nr++] = "CUDA total";
		titles[nr++] = "CUDA time avg";
	}
	if (table->has_memory) {
		titles[nr++] = "CPU Mem";
		titles[nr++] = "Self CPU Mem";
	}
	if (table->has_memory && table->has_cuda_memory) {
		titles[nr++] = "CUDA Mem";
		titles[nr++] = "Self CUDA Mem";
	}
	titles[nr++] = "# of Calls";
	return nr;
}

/* Left aligned; of a text that is too long the end is kept. */
static void source_cell(struct text *t, const char *text)
{
	size_t nr = line_characters(text), width = t->source_width;

	if (nr > width) {
		buf__str(&t->out, "...");
		buf__line_part(&t->out, line_behind(text, nr - width + 3), width);
	} else {
		buf__line_part(&t->out, text, nr);
		text_spaces(&t->out, width - nr);
	}
	buf__str(&t->out, "  ");
}

/* Of a backward op's row the first one says so, at its end: of long ones the end is shown. */
static void frame_text(struct buf *b, const struct text *t, const struct table_row *r, size_t i)
{
	stack_text_frame(b, t->recording, r->stack[i]);
	if (!i && r->is_forward_stack)
		buf__str(b, " " STACK_TEXT_BACKWARD);
}

static void frame_cell(struct text *t, const struct table_row *r, size_t i)
{
	struct buf b = {0};

	frame_text(&b, t, r, i);
	source_cell(t, b.bytes ? b.bytes : "");
	if (!t->out.err)
		t->out.err = buf__error(&b);
	buf__done(&b);
}

/* All columns but the last, empty. */
static void empty_cells(struct text *t)
{
	text_spaces(&t->out, (t->overloads ? 2 : 1) * (t->name_width + 2) +
				     (t->columns + t->flops_columns + t->more_columns) *
					     (TEXT_COLUMN_WIDTH + 2) +
				     (t->shapes_width ? t->shapes_width + 2 : 0));
}

/* The rest of the row's line, a line for each further frame, and one that is empty. */
static void source_lines(struct text *t, const struct table_row *r)
{
	if (r->stack_nr)
		frame_cell(t, r, 0);
	else
		source_cell(t, "");
	buf__char(&t->out, '\n');
	for (size_t i = 1; i < r->stack_nr; i++) {
		empty_cells(t);
		frame_cell(t, r, i);
		buf__char(&t->out, '\n');
	}
	empty_cells(t);
	source_cell(t, "");
	buf__char(&t->out, '\n');
}

static void flops_title(struct text *t, const char *what, uint64_t least)
{
	char title[24];

	(void)snprintf(title, sizeof(title), "%s %s", what, flops_unit(least).name);
	cell(t, title);
}

static void flops_titles(struct text *t)
{
	if (t->table->least_flops)
		flops_title(t, "Total", t->table->least_flops);
	if (!t->table->least_all_flops)
		return;
	flops_title(t, "All", t->table->least_all_flops);
	cell(t, "GFLOP/s");
}

static void title_line(struct text *t, const char *const titles[], size_t nr)
{
	text_spaces(&t->out, t->name_width > 4 ? t->name_width - 4 : 0);
	buf__str(&t->out, "Name  ");
	if (t->overloads) {
		text_spaces(&t->out, t->name_width > 13 ? t->name_width - 13 : 0);
		buf__str(&t->out, "Overload Name  ");
	}
	for (size_t i = 0; i < nr; i++)
		cell(t, titles[i]);
	if (t->shapes_width)
		shapes_cell(t, "Input Shapes");
	flops_titles(t);
	table_estimate_titles(&t->out, t->table);
	if (t->source_width)
		source_cell(t, "Source Location");
	buf__char(&t->out, '\n');
}

static void cuda_cells(struct text *t, const struct table_row *r)
{
	if (t->table->has_cuda_time) {
		time_cell(t, r->self_cuda_ns);
		percent_cell(t, r->self_cuda_ns, t->table->self_cuda_total_ns);
		time_cell(t, r->cuda_total_ns);
		average_cell(t, r->cuda_total_ns, r->calls);
	}
	if (t->table->has_memory) {
		bytes_cell(t, r->cpu_bytes);
		bytes_cell(t, r->self_cpu_bytes);
	}
	if (t->table->has_memory && t->table->has_cuda_memory) {
		bytes_cell(t, r->cuda_bytes);
		bytes_cell(t, r->self_cuda_bytes);
	}
}

static void part_cell(struct text *t, int64_t part)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%lld", (long long)part);
	cell(t, part < 0 ? "-" : text);
}

static void row_line(struct text *t, const struct table_row *r)
{
	char calls[24];

	if (t->table->is_tree)
		tree_cell(t, r->name, r->depth);
	else
		name_cell(t, r->name);
	if (t->overloads)
		name_cell(t, r->overload ? r->overload : "");
	if (t->table->parts)
		part_cell(t, r->part);
	percent_cell(t, r->self_cpu_ns, t->table->self_cpu_total_ns);
	time_cell(t, r->self_cpu_ns);
	if (r->is_async)
		cell(t, "0");
	else
		percent_cell(t, r->cpu_total_ns, t->table->self_cpu_total_ns);
	time_cell(t, r->cpu_total_ns);
	average_cell(t, r->cpu_total_ns, r->calls);
	cuda_cells(t, r);
	(void)snprintf(calls, sizeof(calls), "%llu", (unsigned long long)r->calls);
	cell(t, calls);
	if (t->shapes_width)
		shapes_cell(t, r->shapes ? r->shapes : "[]");
	flops_cells(t, r);
	table_estimate_cells(&t->out, t->table, r, t->options->time_unit);
	if (t->source_width)
		source_lines(t, r);
	else
		buf__char(&t->out, '\n');
}

static void compensation_line(struct text *t)
{
	const struct compensation *c = &t->table->compensation;

	if (c->callback_ns)
		buf__printf(
			&t->out,
			"CPU times are without gpuprof's callbacks in them, two for each operator, "
			"%llu ns each, the mean of %llu that were timed: an estimate\n",
			(unsigned long long)c->callback_ns, (unsigned long long)c->timed_nr);
}

static void head_lines(struct text *t)
{
	const char *titles[COLUMNS_MAX];

	t->columns = column_titles(t->table, titles);
	if (t->options->header) {
		rule(t);
		buf__str(&t->out, t->options->header);
		buf__char(&t->out, '\n');
	}
	if (t->options->top_level) {
		rule(t);
		buf__str(&t->out, "This report only display top-level ops statistics\n");
	}
	table_estimate_origin(&t->out, t->table);
	compensation_line(t);
	separator(t);
	title_line(t, titles, t->columns);
	separator(t);
}

static void total_line(struct text *t, const char *device, uint64_t ns)
{
	buf__printf(&t->out, "Self %s time total: %s\n", device,
		    time_value(t, (double)ns / 1000.0).text);
}

/* The column is there if any row has inputs. */
static void set_shapes_width(struct text *t)
{
	size_t longest = 0;
	bool any = false;

	for (size_t i = 0; i < t->table->rows.nr; i++) {
		const char *shapes = t->table->rows.items[i].shapes;
		size_t nr = shapes ? line_characters(shapes) : 0;

		longest = nr > longest ? nr : longest;
		any |= nr > 2;
	}
	if (any)
		t->shapes_width = longest + 4 < SHAPES_WIDTH_MAX ? longest + 4 : SHAPES_WIDTH_MAX;
}

static void set_source_width(struct text *t)
{
	struct buf b = {0};
	size_t longest = 0;

	for (size_t i = 0; i < t->table->rows.nr; i++)
		for (size_t k = 0; k < t->table->rows.items[i].stack_nr; k++) {
			size_t nr;

			buf__clear(&b);
			frame_text(&b, t, &t->table->rows.items[i], k);
			nr = b.bytes ? line_characters(b.bytes) : 0;
			longest = nr > longest ? nr : longest;
		}
	if (longest)
		t->source_width = longest + 4 < SOURCE_WIDTH_MAX ? longest + 4 : SOURCE_WIDTH_MAX;
	if (!t->out.err)
		t->out.err = buf__error(&b);
	buf__done(&b);
}

static void set_widths(struct text *t)
{
	size_t max = t->options->max_name_width > 0 ? (size_t)t->options->max_name_width
						    : NAME_WIDTH_MAX;
	size_t longest = t->table->longest_name;

	for (size_t i = 0; i < t->table->rows.nr; i++) {
		const struct table_row *r = &t->table->rows.items[i];
		size_t nr = line_characters(r->name) + 2UL * r->depth;

		longest = nr > longest ? nr : longest;
		t->overloads |= r->overload && *r->overload;
	}
	set_source_width(t);
	t->flops_columns = (t->table->least_flops ? 1 : 0) + (t->table->least_all_flops ? 2 : 0);
	t->more_columns = table_estimate_columns(t->table);
	t->name_width = longest + 4 < max || t->table->is_tree ? longest + 4 : max;
	set_shapes_width(t);
}

int output_table_text(struct sink *s, const struct table *table,
		      const struct output_table_options *options)
{
	struct text t = {.table = table, .options = options, .recording = table->recording};
	long shown = 0;

	if (!table->rows.nr)
		return 0;
	set_widths(&t);
	head_lines(&t);
	for (size_t i = 0; i < table->rows.nr && shown != options->limit; i++) {
		if (options->top_level && table->rows.items[i].has_parent)
			continue;
		row_line(&t, &table->rows.items[i]);
		shown++;
	}
	separator(&t);
	total_line(&t, "CPU", table->self_cpu_total_ns);
	table_estimate_total(&t.out, table, options->time_unit);
	if (table->has_cuda_time)
		total_line(&t, "CUDA", table->self_cuda_total_ns);
	flops_text_gpu(&t.out, &table->gpu);
	return sink__write_buf(s, &t.out);
}
