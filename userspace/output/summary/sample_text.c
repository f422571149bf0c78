/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The table of samples for people: every time has its standard error beside it.
 */
#include "output/format/output.h"
#include "output/format/stack_text.h"
#include "output/format/text_cells.h"

#include <stdio.h>
#include <string.h>

#include "base/banned.h"

#define NAME_WIDTH_MAX 75
/* Samples of which a tenth has an error of a third of it. */
#define FEW 100

static const char *const titles[] = {"Samples",	  "Self CPU %", "Self CPU", "+-", "CPU total %",
				     "CPU total", "+-",		"Off CPU",  "+-"};

#define TITLES_NR (sizeof(titles) / sizeof(*titles))

struct text {
	const struct sample_table *table;
	const struct output_table_options *options;
	struct buf out;
	size_t name_width;
};

static void name_cell(struct text *t, const char *name)
{
	size_t nr = line_characters(name);

	if (nr <= NAME_WIDTH_MAX) {
		text_name(&t->out, name, t->name_width);
		return;
	}
	/* Of long ones the end says more. */
	buf__str(&t->out, "...");
	text_name(&t->out, line_behind(name, nr - NAME_WIDTH_MAX + 3), 0);
}

static void cell(struct text *t, const char *value)
{
	text_cell(&t->out, value, TEXT_COLUMN_WIDTH);
}

static void time_cell(struct text *t, uint64_t ns)
{
	cell(t, text_time((double)ns / 1000.0, t->options->time_unit).text);
}

static void share_cell(struct text *t, uint64_t ns)
{
	char value[32] = "--";

	if (t->table->all.ns)
		(void)snprintf(value, sizeof(value), "%.2f%%",
			       100.0 * (double)ns / (double)t->table->all.ns);
	cell(t, value);
}

static void separator(struct text *t)
{
	for (size_t i = 0; i <= TITLES_NR; i++)
		text_rule(&t->out, i ? TEXT_COLUMN_WIDTH : t->name_width);
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
	char nr[24];

	(void)snprintf(nr, sizeof(nr), "%llu", (unsigned long long)r->total.nr);
	name_cell(t, r->name);
	cell(t, nr);
	share_cell(t, r->self.ns);
	time_cell(t, r->self.ns);
	time_cell(t, r->self.error_ns);
	share_cell(t, r->total.ns);
	time_cell(t, r->total.ns);
	time_cell(t, r->total.error_ns);
	time_cell(t, r->off.ns);
	time_cell(t, r->off.error_ns);
	buf__char(&t->out, '\n');
	stack_lines(t, r);
}

static void set_name_width(struct text *t)
{
	t->name_width = 4;
	for (size_t i = 0; i < t->table->rows.nr; i++) {
		size_t nr = line_characters(t->table->rows.items[i].name);

		t->name_width = nr > t->name_width ? nr : t->name_width;
	}
	if (t->name_width > NAME_WIDTH_MAX)
		t->name_width = NAME_WIDTH_MAX;
}

static void all_lines(struct text *t)
{
	const struct sample_table *table = t->table;

	if (t->options->header)
		buf__printf(&t->out, "%s\n", t->options->header);
	separator(t);
	text_cell(&t->out, "Name", t->name_width);
	for (size_t i = 0; i < TITLES_NR; i++)
		cell(t, titles[i]);
	buf__char(&t->out, '\n');
	separator(t);
	for (size_t i = 0; i < table->rows.nr; i++)
		if (t->options->limit < 0 || i < (size_t)t->options->limit)
			row_line(t, &table->rows.items[i]);
	separator(t);
	buf__printf(&t->out,
		    "Estimated from %llu samples of threads on a CPU: %.3f s of CPU time\n",
		    (unsigned long long)table->all.nr, (double)table->all.ns / 1e9);
	if (table->all.nr < FEW)
		buf__str(&t->out,
			 "That is few: record for longer, or with a larger --overhead or --hz\n");
}

int output_samples_text(struct sink *s, const struct sample_table *table,
			const struct output_table_options *options)
{
	struct text t = {.table = table, .options = options};

	if (!table->rows.nr)
		return 0;
	set_name_width(&t);
	all_lines(&t);
	return sink__write_buf(s, &t.out);
}
