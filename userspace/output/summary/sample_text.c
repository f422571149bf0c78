/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Prints the table of samples for people: every time has its standard error beside it.
 */
#include "output/format/output.h"
#include "output/format/stack_text.h"
#include "output/format/text_cells.h"
#include "output/format/text_columns.h"

#include <stdio.h>
#include <string.h>

#include "base/banned.h"

#define NAME_WIDTH_MAX 75
#define NAME_LEAST     30
/* Samples of which a tenth has an error of a third of it. */
#define FEW 100

/* The columns; the name comes first. Those of the highest rank are left out first where the table
 * has to fit a terminal, a time with its error. */
static const struct {
	const char *title;
	unsigned int rank;
} columns[] = {
	{"Name", 0},	    {"Samples", 0},   {"Self CPU %", 2}, {"Self CPU", 0}, {"+-", 0},
	{"CPU total %", 4}, {"CPU total", 1}, {"+-", 1},	 {"Off CPU", 3},  {"+-", 3},
};

#define COLUMNS_NR (sizeof(columns) / sizeof(*columns))

struct text {
	const struct sample_table *table;
	const struct output_table_options *options;
	struct buf out;
	struct text_column layout[COLUMNS_NR];
	size_t last; /* of the columns that are shown */
};

/* The values of a row's columns but for its name. */
struct values {
	struct text_value of[COLUMNS_NR];
};

static struct text_value share_of(const struct text *t, uint64_t ns)
{
	struct text_value v = {"--"};

	if (t->table->all.ns)
		(void)snprintf(v.text, sizeof(v.text), "%.2f%%",
			       100.0 * (double)ns / (double)t->table->all.ns);
	return v;
}

static struct values values_of(const struct text *t, const struct sample_row *r)
{
	const uint64_t times[COLUMNS_NR] = {
		[3] = r->self.ns,	 [4] = r->self.error_ns, [6] = r->total.ns,
		[7] = r->total.error_ns, [8] = r->off.ns,	 [9] = r->off.error_ns,
	};
	struct values v;

	for (size_t i = 3; i < COLUMNS_NR; i++)
		v.of[i] = text_time((double)times[i] / 1000.0, t->options->time_unit);
	v.of[0].text[0] = '\0';
	(void)snprintf(v.of[1].text, sizeof(v.of[1].text), "%llu", (unsigned long long)r->total.nr);
	v.of[2] = share_of(t, r->self.ns);
	v.of[5] = share_of(t, r->total.ns);
	return v;
}

/* ---- cells ---- */

static void gap(struct text *t, size_t i)
{
	if (!t->options->columns || i != t->last)
		text_spaces(&t->out, TEXT_COLUMN_GAP);
}

/* Long names are cut in the middle where the table has to fit; otherwise their end is kept, which
 * says more than their beginning. */
static void name_cell(struct text *t, const char *name)
{
	size_t nr = line_characters(name), width = t->layout[0].width;

	text_spaces(&t->out, nr < width ? width - nr : 0);
	if (t->options->columns || nr <= width) {
		text_middle(&t->out, name, width);
	} else {
		buf__str(&t->out, "...");
		buf__line(&t->out, line_behind(name, nr - width + 3));
	}
	gap(t, 0);
}

static void cell(struct text *t, size_t i, const char *value)
{
	size_t nr = strlen(value), width = t->layout[i].width;

	if (t->layout[i].left_out)
		return;
	text_spaces(&t->out, nr < width ? width - nr : 0);
	buf__str(&t->out, value);
	gap(t, i);
}

static void separator(struct text *t)
{
	for (size_t i = 0; i < COLUMNS_NR; i++) {
		for (size_t k = 0; !t->layout[i].left_out && k < t->layout[i].width; k++)
			buf__char(&t->out, '-');
		if (!t->layout[i].left_out)
			gap(t, i);
	}
	buf__char(&t->out, '\n');
}

static void stack_lines(struct text *t, const struct sample_row *r)
{
	struct buf frame = {0};

	for (size_t i = 0; i < r->stack_nr; i++) {
		buf__clear(&frame);
		buf__str(&frame, "  ");
		stack_text_frame(&frame, t->table->recording, r->stack[i]);
		buf__line(&t->out, frame.bytes ? frame.bytes : "");
		buf__char(&t->out, '\n');
	}
	if (!t->out.err)
		t->out.err = buf__error(&frame);
	buf__done(&frame);
}

static void row_line(struct text *t, const struct sample_row *r)
{
	struct values v = values_of(t, r);

	name_cell(t, r->name);
	for (size_t i = 1; i < COLUMNS_NR; i++)
		cell(t, i, v.of[i].text);
	buf__char(&t->out, '\n');
	stack_lines(t, r);
}

/* ---- widths ---- */

static void widen(struct text_column *c, size_t nr)
{
	c->width = nr > c->width ? nr : c->width;
}

static size_t rows_to_print(const struct text *t)
{
	size_t nr = t->table->rows.nr;
	long limit = t->options->limit;

	return limit >= 0 && (size_t)limit < nr ? (size_t)limit : nr;
}

static void set_plain_widths(struct text *t)
{
	for (size_t i = 0; i < t->table->rows.nr; i++)
		widen(&t->layout[0], line_characters(t->table->rows.items[i].name));
	if (t->layout[0].width > NAME_WIDTH_MAX)
		t->layout[0].width = NAME_WIDTH_MAX;
	for (size_t i = 1; i < COLUMNS_NR; i++)
		t->layout[i].width = TEXT_COLUMN_WIDTH;
}

static void set_fitted_widths(struct text *t)
{
	for (size_t k = 0; k < rows_to_print(t); k++) {
		const struct sample_row *r = &t->table->rows.items[k];
		struct values v = values_of(t, r);

		widen(&t->layout[0], line_characters(r->name));
		for (size_t i = 1; i < COLUMNS_NR; i++)
			widen(&t->layout[i], strlen(v.of[i].text));
	}
	if (t->layout[0].width > NAME_WIDTH_MAX)
		t->layout[0].width = NAME_WIDTH_MAX;
	text_columns_fit(t->layout, COLUMNS_NR, t->options->columns);
}

static void set_widths(struct text *t)
{
	for (size_t i = 0; i < COLUMNS_NR; i++)
		t->layout[i] = (struct text_column){.width = strlen(columns[i].title),
						    .least = i ? 0 : NAME_LEAST,
						    .rank = columns[i].rank};
	if (t->options->columns)
		set_fitted_widths(t);
	else
		set_plain_widths(t);
	for (size_t i = 0; i < COLUMNS_NR; i++)
		if (!t->layout[i].left_out)
			t->last = i;
}

/* ---- lines ---- */

static void rows_hint(struct text *t)
{
	if (rows_to_print(t) < t->table->rows.nr)
		buf__printf(&t->out, "%zu of %zu rows (--limit -1 shows all)\n", rows_to_print(t),
			    t->table->rows.nr);
}

/* Names the columns that are left out, but for errors: each goes with its time. */
static void columns_hint(struct text *t)
{
	struct buf line = {0};

	for (size_t i = 0; i < COLUMNS_NR; i++)
		if (t->layout[i].left_out && strcmp(columns[i].title, "+-") != 0)
			buf__printf(&line, "%s%s",
				    line.nr ? ", " : "left out to fit: ", columns[i].title);
	if (line.nr)
		buf__str(&line, " (--wide shows all)");
	if (line.nr)
		text_wrapped(&t->out, line.bytes, t->options->columns);
	if (!t->out.err)
		t->out.err = buf__error(&line);
	buf__done(&line);
}

static void all_lines(struct text *t)
{
	const struct sample_table *table = t->table;

	if (t->options->header)
		buf__printf(&t->out, "%s\n", t->options->header);
	separator(t);
	for (size_t i = 0; i < COLUMNS_NR; i++)
		cell(t, i, columns[i].title);
	buf__char(&t->out, '\n');
	separator(t);
	for (size_t i = 0; i < rows_to_print(t); i++)
		row_line(t, &table->rows.items[i]);
	separator(t);
	buf__printf(&t->out,
		    "Estimated from %llu samples of threads on a CPU: %.3f s of CPU time\n",
		    (unsigned long long)table->all.nr, (double)table->all.ns / 1e9);
	if (table->all.nr < FEW)
		buf__str(&t->out,
			 "That is few: record for longer, or with a larger --overhead or --hz\n");
	if (t->options->hints) {
		rows_hint(t);
		columns_hint(t);
	}
}

int output_samples_text(struct sink *s, const struct sample_table *table,
			const struct output_table_options *options)
{
	struct text t = {.table = table, .options = options};

	if (!table->rows.nr)
		return 0;
	set_widths(&t);
	all_lines(&t);
	return sink__write_buf(s, &t.out);
}
