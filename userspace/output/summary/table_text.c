/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Prints key_averages().table() as PyTorch 2.6 and later do, or as much of it as a terminal has
 * room for. Each column is set by its style alone; its title and values are table_columns.c's.
 */
#include "output/format/flops_text.h"
#include "output/format/output.h"
#include "output/format/text_cells.h"
#include "output/format/text_columns.h"
#include "output/summary/table_columns.h"
#include "output/summary/table_estimates.h"

#include <string.h>

#include "base/banned.h"

#define NAME_WIDTH_MAX	 55
#define SHAPES_WIDTH_MAX 80
#define SOURCE_WIDTH_MAX 75

/* In a table that has to fit a terminal. */
#define NAME_FITTED_MAX 80
#define NAME_LEAST	30
#define SHAPES_LEAST	24
#define SOURCE_LEAST	30

struct text {
	const struct table *table;
	const struct output_table_options *options;
	const struct table_column *columns[TABLE_COLUMNS_MAX];
	struct text_column layout[TABLE_COLUMNS_MAX];
	size_t columns_nr;
	size_t last; /* of the columns that are shown */
	struct buf value;
	struct buf out;
};

static bool is_fitted(const struct text *t)
{
	return t->options->columns > 0;
}

/* The next row to print from *at on, NULL: none is left. The limit is the caller's. */
static const struct table_row *next_row(const struct text *t, size_t *at)
{
	while (*at < t->table->rows.nr) {
		const struct table_row *r = &t->table->rows.items[(*at)++];

		if (!t->options->top_level || !r->has_parent)
			return r;
	}
	return NULL;
}

/* ---- cells ---- */

static const char *value_text(struct text *t)
{
	if (!t->out.err)
		t->out.err = buf__error(&t->value);
	return t->value.nr ? t->value.bytes : "";
}

static const char *title_of(struct text *t, size_t i)
{
	buf__clear(&t->value);
	table_column_title(&t->value, t->table, t->columns[i]);
	return value_text(t);
}

static const char *value_of(struct text *t, size_t i, const struct table_row *r)
{
	buf__clear(&t->value);
	t->columns[i]->value(&t->value, t->table, r, t->columns[i], t->options->time_unit);
	return value_text(t);
}

/* Every column ends with a gap, but for the last one where the line must not be too long. */
static void gap(struct text *t, size_t i)
{
	if (!is_fitted(t) || i != t->last)
		text_spaces(&t->out, TEXT_COLUMN_GAP);
}

/* On the right. A fitted table cuts its middle, torch.profiler's its end. */
static void text_on_the_right(struct text *t, const char *text, size_t width)
{
	size_t nr = line_characters(text);

	text_spaces(&t->out, nr < width ? width - nr : 0);
	if (is_fitted(t))
		text_middle(&t->out, text, width);
	else
		buf__line_part(&t->out, text, width);
}

static size_t name_width_max(const struct text *t)
{
	int max = t->options->max_name_width;

	return max > 0 ? (size_t)max : NAME_WIDTH_MAX;
}

/* torch.profiler cuts names of the greatest width or nearly so. */
static void name_cell(struct text *t, const char *name, size_t width)
{
	size_t max = name_width_max(t), keep = max > 3 ? max - 3 : 0, nr = line_characters(name);

	if (is_fitted(t) || nr < keep) {
		text_on_the_right(t, name, width);
		return;
	}
	text_spaces(&t->out, keep + 3 < width ? width - keep - 3 : 0);
	buf__line_part(&t->out, name, keep);
	buf__str(&t->out, "...");
}

/* In a tree names stand on the left, those of children further in. */
static void tree_cell(struct text *t, const char *name, size_t width, uint32_t depth)
{
	size_t indent = 2UL * depth < width ? 2UL * depth : width;
	size_t nr = line_characters(name), room = width - indent;

	text_spaces(&t->out, indent);
	if (is_fitted(t))
		text_middle(&t->out, name, room);
	else
		buf__line_part(&t->out, name, room);
	text_spaces(&t->out, nr < room ? room - nr : 0);
}

/* On the left. Of a text that is too long the end is kept. */
static void source_cell(struct text *t, const char *text, size_t width)
{
	size_t nr = line_characters(text);

	if (nr > width) {
		buf__str(&t->out, "...");
		buf__line_part(&t->out, line_behind(text, nr - width + 3), width);
	} else {
		buf__line_part(&t->out, text, nr);
		text_spaces(&t->out, is_fitted(t) ? 0 : width - nr);
	}
}

static void cell(struct text *t, size_t i, const char *text, const struct table_row *r)
{
	size_t width = t->layout[i].width;

	switch (t->columns[i]->style) {
	case TABLE_NUMBER:
		text_spaces(&t->out, strlen(text) < width ? width - strlen(text) : 0);
		buf__str(&t->out, text);
		break;
	case TABLE_NAME:
		if (!r)
			text_on_the_right(t, text, width);
		else if (t->table->is_tree && !i)
			tree_cell(t, text, width, r->depth);
		else
			name_cell(t, text, width);
		break;
	case TABLE_SHAPES:
		text_on_the_right(t, text, width);
		break;
	case TABLE_SOURCE:
		source_cell(t, text, width);
		break;
	}
	gap(t, i);
}

/* ---- lines ---- */

static void separator(struct text *t)
{
	for (size_t i = 0; i < t->columns_nr; i++) {
		if (t->layout[i].left_out)
			continue;
		for (size_t k = 0; k < t->layout[i].width; k++)
			buf__char(&t->out, '-');
		gap(t, i);
	}
	buf__char(&t->out, '\n');
}

/* Across all columns, without the last one's gap. */
static void rule(struct text *t)
{
	for (size_t i = 0; i < t->columns_nr; i++)
		for (size_t k = 0; !t->layout[i].left_out &&
				   k < t->layout[i].width + (i == t->last ? 0 : TEXT_COLUMN_GAP);
		     k++)
			buf__char(&t->out, '=');
	buf__char(&t->out, '\n');
}

static void title_line(struct text *t)
{
	for (size_t i = 0; i < t->columns_nr; i++)
		if (!t->layout[i].left_out)
			cell(t, i, title_of(t, i), NULL);
	buf__char(&t->out, '\n');
}

/* A line with a frame alone; behind the last frame it is empty. */
static void frame_line(struct text *t, const struct table_row *r, size_t frame)
{
	bool empty = frame >= r->stack_nr && is_fitted(t);

	for (size_t i = 0; i < t->last && !empty; i++)
		if (!t->layout[i].left_out)
			text_spaces(&t->out, t->layout[i].width + TEXT_COLUMN_GAP);
	buf__clear(&t->value);
	table_column_frame(&t->value, t->table, r, frame);
	if (!empty)
		cell(t, t->last, value_text(t), r);
	buf__char(&t->out, '\n');
}

/* One line, or with stacks one for each frame and an empty one. */
static void row_lines(struct text *t, const struct table_row *r)
{
	for (size_t i = 0; i < t->columns_nr; i++)
		if (!t->layout[i].left_out)
			cell(t, i, value_of(t, i, r), r);
	buf__char(&t->out, '\n');
	if (t->columns[t->last]->style != TABLE_SOURCE)
		return;
	for (size_t i = 1; i < r->stack_nr; i++)
		frame_line(t, r, i);
	frame_line(t, r, r->stack_nr);
}

static void compensation_line(struct text *t)
{
	const struct compensation *c = &t->table->compensation;

	if (c->callback_ns)
		buf__printf(&t->out,
			    "CPU times are without gpuprof's callbacks, two for each operator at "
			    "%llu ns each, the mean of %llu that were timed: an estimate\n",
			    (unsigned long long)c->callback_ns, (unsigned long long)c->timed_nr);
}

static void head_lines(struct text *t)
{
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
	title_line(t);
	separator(t);
}

static void total_line(struct text *t, const char *device, uint64_t ns)
{
	buf__printf(&t->out, "Self %s time total: %s\n", device,
		    text_time((double)ns / 1000.0, t->options->time_unit).text);
}

/* Names the columns that are left out, but for errors: each goes with its estimate. */
static void columns_hint(struct text *t)
{
	struct buf line = {0};

	for (size_t i = 0; i < t->columns_nr; i++) {
		const struct table_column *c = t->columns[i];

		if (!t->layout[i].left_out || (c->title && !strcmp(c->title, "+/-")))
			continue;
		buf__str(&line, line.nr ? ", " : "left out to fit: ");
		buf__str(&line, title_of(t, i));
	}
	if (line.nr)
		buf__str(&line, " (--wide shows all)");
	if (line.nr)
		text_wrapped(&t->out, line.bytes, t->options->columns);
	if (!t->out.err)
		t->out.err = buf__error(&line);
	buf__done(&line);
}

static void rows_hint(struct text *t, size_t shown)
{
	size_t rows = 0;

	for (size_t at = 0; next_row(t, &at);)
		rows++;
	if (shown < rows)
		buf__printf(&t->out, "%zu of %zu rows (--limit -1 shows all)\n", shown, rows);
}

/* ---- widths ---- */

static size_t least_of(enum table_style style)
{
	static const size_t least[] = {[TABLE_NUMBER] = 0,
				       [TABLE_NAME] = NAME_LEAST,
				       [TABLE_SHAPES] = SHAPES_LEAST,
				       [TABLE_SOURCE] = SOURCE_LEAST};

	return least[style];
}

static size_t value_width(struct text *t, size_t i, const struct table_row *r)
{
	size_t nr = line_characters(value_of(t, i, r));

	if (t->columns[i]->style == TABLE_SOURCE) {
		for (size_t k = 1; k < r->stack_nr; k++) {
			size_t frame;

			buf__clear(&t->value);
			table_column_frame(&t->value, t->table, r, k);
			frame = line_characters(value_text(t));
			nr = frame > nr ? frame : nr;
		}
	}
	return i ? nr : nr + 2UL * r->depth;
}

/* The longest cell of the table, printed or not; titles do not count. */
static size_t longest_cell(struct text *t, size_t i)
{
	size_t longest = 0;

	for (size_t k = 0; k < t->table->rows.nr; k++) {
		size_t nr = value_width(t, i, &t->table->rows.items[k]);

		longest = nr > longest ? nr : longest;
	}
	return longest;
}

/* The longest of its title and the cells that are printed. */
static size_t longest_printed(struct text *t, size_t i)
{
	size_t longest = strlen(title_of(t, i)), at = 0;
	const struct table_row *r;

	for (long shown = 0; shown != t->options->limit && (r = next_row(t, &at)); shown++) {
		size_t nr = value_width(t, i, r);

		longest = nr > longest ? nr : longest;
	}
	return longest;
}

/* As torch.profiler has them, which knows one width for all kinds of names. */
static size_t plain_width(struct text *t, size_t i)
{
	size_t longest = t->table->longest_name, nr, max;

	switch (t->columns[i]->style) {
	case TABLE_NUMBER:
		return TEXT_COLUMN_WIDTH;
	case TABLE_NAME:
		if (i)
			return t->layout[0].width;
		nr = longest_cell(t, i);
		longest = (nr > longest ? nr : longest) + 4;
		max = name_width_max(t);
		return longest < max || t->table->is_tree ? longest : max;
	case TABLE_SHAPES:
	case TABLE_SOURCE:
		break;
	}
	longest = longest_cell(t, i) + 4;
	max = t->columns[i]->style == TABLE_SHAPES ? SHAPES_WIDTH_MAX : SOURCE_WIDTH_MAX;
	return longest < max ? longest : max;
}

static size_t fitted_width(struct text *t, size_t i)
{
	size_t longest = longest_printed(t, i);

	return t->columns[i]->style == TABLE_NAME && longest > NAME_FITTED_MAX ? NAME_FITTED_MAX
									       : longest;
}

static void set_widths(struct text *t)
{
	const char *sort = t->options->sort;

	t->columns_nr = table_columns_of(t->table, t->columns);
	for (size_t i = 0; i < t->columns_nr; i++) {
		const struct table_column *c = t->columns[i];
		bool sorts = sort && c->sort && table_sort_key_is(sort, c->sort);

		t->layout[i] = (struct text_column){
			.width = is_fitted(t) ? fitted_width(t, i) : plain_width(t, i),
			.least = least_of(c->style),
			.rank = sorts ? 0 : c->rank,
		};
	}
	if (is_fitted(t))
		text_columns_fit(t->layout, t->columns_nr, t->options->columns);
	for (size_t i = 0; i < t->columns_nr; i++)
		if (!t->layout[i].left_out)
			t->last = i;
}

int output_table_text(struct sink *s, const struct table *table,
		      const struct output_table_options *options)
{
	struct text t = {.table = table, .options = options};
	const struct table_row *r;
	size_t at = 0;
	long shown = 0;

	if (!table->rows.nr)
		return 0;
	set_widths(&t);
	head_lines(&t);
	for (; shown != options->limit && (r = next_row(&t, &at)); shown++)
		row_lines(&t, r);
	separator(&t);
	total_line(&t, "CPU", table->self_cpu_total_ns);
	table_estimate_total(&t.out, table, options->time_unit);
	if (table->has_cuda_time)
		total_line(&t, "CUDA", table->self_cuda_total_ns);
	flops_text_gpu(&t.out, &table->gpu);
	if (options->hints) {
		rows_hint(&t, (size_t)shown);
		columns_hint(&t);
	}
	buf__done(&t.value);
	return sink__write_buf(s, &t.out);
}
