/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The ranks of a job beside each other, as text: a table of ranks, then the collectives and steps
 * in which one rank delayed the others most.
 */
#include "output/format/output.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/banned.h"

#define COLUMN_WIDTH 14

struct text {
	const struct timeline *t;
	const struct ranks *ranks;
	struct buf out;
	long limit;
};

static void cell(struct text *t, const char *text)
{
	buf__printf(&t->out, "%*s", COLUMN_WIDTH, text);
}

static void number_cell(struct text *t, uint64_t n)
{
	buf__printf(&t->out, "%*" PRIu64, COLUMN_WIDTH, n);
}

static void time_cell(struct text *t, uint64_t ns)
{
	char text[32];

	if (ns >= 1000000000)
		(void)snprintf(text, sizeof(text), "%.3fs", (double)ns / 1e9);
	else if (ns >= 1000000)
		(void)snprintf(text, sizeof(text), "%.3fms", (double)ns / 1e6);
	else
		(void)snprintf(text, sizeof(text), "%.3fus", (double)ns / 1e3);
	cell(t, text);
}

static void share_cell(struct text *t, uint64_t part, uint64_t whole)
{
	char text[32];

	if (!whole) {
		cell(t, "-");
		return;
	}
	(void)snprintf(text, sizeof(text), "%.1f%%", 100.0 * (double)part / (double)whole);
	cell(t, text);
}

static void title_line(struct text *t, const char *const titles[], size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		cell(t, titles[i]);
	buf__char(&t->out, '\n');
}

static void rank_lines(struct text *t)
{
	static const char *const titles[] = {
		"Rank",		"PID",	      "Times of", "Collectives", "Unmatched",
		"Communicated", "Overlapped", "Waited",	  "Came last",	 "Behind by"};

	title_line(t, titles, sizeof(titles) / sizeof(*titles));
	for (size_t i = 0; i < t->ranks->rows.nr; i++) {
		const struct rank_row *row = &t->ranks->rows.items[i];

		buf__printf(&t->out, "%*" PRId32 "%*" PRId32, COLUMN_WIDTH, row->rank, COLUMN_WIDTH,
			    t->t->processes.items[row->process].pid);
		cell(t, row->by_gpu ? "GPU" : "CPU");
		number_cell(t, row->calls_nr);
		number_cell(t, row->unmatched_nr);
		time_cell(t, row->communication_ns);
		share_cell(t, row->computed_ns, row->communication_ns);
		time_cell(t, row->waited_ns);
		number_cell(t, row->last_nr);
		time_cell(t, row->behind_ns);
		buf__char(&t->out, '\n');
	}
}

static int32_t rank_of(const struct text *t, uint32_t call)
{
	uint32_t process = t->ranks->calls.items[call].process;

	return t->t->processes.items[process].rank;
}

static void rank_cell(struct text *t, int32_t rank)
{
	buf__printf(&t->out, "%*" PRId32, COLUMN_WIDTH, rank);
}

static void collective_line(struct text *t, const struct rank_collective *one)
{
	const struct rank_call *last = &t->ranks->calls.items[one->last];

	cell(t, last->kind);
	time_cell(t, last->start_ns - t->t->start_ns);
	rank_cell(t, rank_of(t, one->last));
	time_cell(t, one->behind_ns);
	time_cell(t, one->spread_ns);
	buf__char(&t->out, '\n');
}

static void step_line(struct text *t, const struct rank_step *step)
{
	number_cell(t, step->number);
	time_cell(t, step->end_ns - step->start_ns);
	number_cell(t, step->collectives_nr);
	rank_cell(t, t->ranks->rows.items[step->last].rank);
	time_cell(t, step->behind_ns);
	buf__char(&t->out, '\n');
}

struct cost {
	uint64_t behind_ns;
	size_t index;
};

static int dearest_first(const void *a, const void *b)
{
	const struct cost *x = a, *y = b;

	if (x->behind_ns != y->behind_ns)
		return x->behind_ns > y->behind_ns ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

static size_t shown_nr(const struct text *t, size_t nr)
{
	return t->limit >= 0 && (size_t)t->limit < nr ? (size_t)t->limit : nr;
}

static int collective_lines(struct text *t)
{
	static const char *const titles[] = {"Collective", "At", "Last rank", "Behind by",
					     "First to last"};
	VEC(struct cost) costs = {0};
	int err = 0;

	for (size_t i = 0; i < t->ranks->collectives.nr && !err; i++) {
		const struct rank_collective *one = &t->ranks->collectives.items[i];

		if (one->last != TL_NONE)
			err = vec_push(&costs, ((struct cost){one->behind_ns, i}));
	}
	if (!err && costs.nr) {
		qsort(costs.items, costs.nr, sizeof(*costs.items), dearest_first);
		buf__char(&t->out, '\n');
		title_line(t, titles, sizeof(titles) / sizeof(*titles));
	}
	for (size_t i = 0; i < shown_nr(t, costs.nr) && !err; i++)
		collective_line(t, &t->ranks->collectives.items[costs.items[i].index]);
	vec_done(&costs);
	return err;
}

static int step_lines(struct text *t)
{
	static const char *const titles[] = {"Step", "Took", "Collectives", "Last rank",
					     "Behind by"};
	VEC(struct cost) costs = {0};
	int err = 0;

	for (size_t i = 0; i < t->ranks->steps.nr && !err; i++) {
		const struct rank_step *step = &t->ranks->steps.items[i];

		if (step->last != TL_NONE)
			err = vec_push(&costs, ((struct cost){step->behind_ns, i}));
	}
	if (!err && costs.nr) {
		qsort(costs.items, costs.nr, sizeof(*costs.items), dearest_first);
		buf__char(&t->out, '\n');
		title_line(t, titles, sizeof(titles) / sizeof(*titles));
	}
	for (size_t i = 0; i < shown_nr(t, costs.nr) && !err; i++)
		step_line(t, &t->ranks->steps.items[costs.items[i].index]);
	vec_done(&costs);
	return err;
}

/* What keeps the figures from being all of it. */
static void notes(struct text *t)
{
	uint64_t untimed = 0;

	for (size_t i = 0; i < t->ranks->rows.nr; i++)
		untimed += t->ranks->rows.items[i].untimed_nr;
	buf__printf(&t->out,
		    "\nmatched: %zu collectives; of %" PRIu64
		    " calls it is not known when they were done\n",
		    t->ranks->collectives.nr, untimed);
	if (!t->ranks->one_clock)
		buf__str(&t->out, "the ranks' clocks are apart by more than is known: who came "
				  "last cannot be told\n");
	else if (t->ranks->clock_error_ns)
		buf__printf(&t->out,
			    "clocks agree within %.3f us: of %" PRIu64
			    " collectives it cannot be told who came last\n",
			    (double)t->ranks->clock_error_ns / 1e3, t->ranks->undecided_nr);
}

int output_ranks_text(struct sink *s, const struct timeline *t, const struct ranks *ranks,
		      long limit)
{
	struct text text = {.t = t, .ranks = ranks, .limit = limit};
	int err;

	rank_lines(&text);
	err = collective_lines(&text);
	err = err ? err : step_lines(&text);
	notes(&text);
	if (!err)
		err = sink__write_buf(s, &text.out);
	buf__done(&text.out);
	return err;
}
