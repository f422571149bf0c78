/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Compares ranks. A group is one channel of each of its ranks, found by which channels match
 * (rank_match.c); its collectives are then compared one by one. A call that a rank lost, or that
 * lies at an end of the capture, finds no partner in every rank, and is counted.
 */
#include "timeline/analysis/rank_calls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "base/cleanup.h"
#include "timeline/model/sort.h"

/* The most ranks in groups; calls of further ranks stay without partners. */
#define CHANNELS_MAX 4096

/* The most calls that may be lost in a row. */
#define LOST_MAX 4

struct matching {
	const struct timeline *t;
	struct ranks *ranks;
	VEC(struct rank_channel) channels;
	VEC(struct rank_channel) group; /* the current group: one channel per process */
};

static void matching__done(struct matching *m)
{
	vec_done(&m->channels);
	vec_done(&m->group);
}

void ranks__done(struct ranks *ranks)
{
	vec_done(&ranks->rows);
	vec_done(&ranks->calls);
	vec_done(&ranks->collectives);
	vec_done(&ranks->members);
	vec_done(&ranks->steps);
}

bool ranks_there(const struct timeline *t)
{
	size_t nr = 0;

	for (size_t i = 0; i < t->processes.nr; i++)
		nr += t->processes.items[i].rank >= 0;
	return nr > 1;
}

/* ---- rows ---- */

static int by_rank(const void *a, const void *b)
{
	const struct rank_row *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return x->process < y->process ? -1 : x->process > y->process;
}

static int add_rows(const struct timeline *t, struct ranks *ranks)
{
	for (size_t i = 0; i < t->processes.nr; i++) {
		const struct rank_row row = {.process = (uint32_t)i,
					     .rank = t->processes.items[i].rank};

		if (row.rank >= 0 && vec_push(&ranks->rows, row))
			return -ENOMEM;
	}
	if (ranks->rows.nr)
		qsort(ranks->rows.items, ranks->rows.nr, sizeof(*ranks->rows.items), by_rank);
	return 0;
}

static bool communicates(const struct rank_row *row)
{
	return row->calls_nr || row->peer_nr || row->untimed_nr;
}

/* Processes that a rank starts (DataLoader workers) inherit its number: of processes with one
 * number, keeps those that communicate. */
static void drop_helpers(struct ranks *ranks)
{
	struct rank_row *rows = ranks->rows.items;
	size_t kept = 0, end;

	for (size_t i = 0; i < ranks->rows.nr; i = end) {
		bool any = false;

		for (end = i; end < ranks->rows.nr && rows[end].rank == rows[i].rank; end++)
			any |= communicates(&rows[end]);
		for (size_t k = i; k < end; k++)
			if (any ? communicates(&rows[k]) : k == i)
				rows[kept++] = rows[k];
	}
	ranks->rows.nr = kept;
}

/* ---- collectives ---- */

static int find_channels(struct matching *m)
{
	const struct rank_call *calls = m->ranks->calls.items;

	for (uint32_t i = 0; i < m->ranks->calls.nr; i++) {
		struct rank_channel *last =
			m->channels.nr ? &m->channels.items[m->channels.nr - 1] : NULL;
		const struct rank_channel one = {.process = calls[i].process, .first = i, .nr = 1};

		if (last && calls[i].process == last->process &&
		    calls[i].channel == calls[last->first].channel)
			last->nr++;
		else if (m->channels.nr == CHANNELS_MAX)
			break;
		else if (vec_push(&m->channels, one))
			return -ENOMEM;
	}
	return 0;
}

/* Picks the best matching channel of each other process. */
static int find_group(struct matching *m, struct rank_channel *first)
{
	m->group.nr = 0;
	first->taken = true;
	if (vec_push(&m->group, *first))
		return -ENOMEM;
	for (struct rank_channel *c = first + 1, *end = m->channels.items + m->channels.nr;
	     c < end;) {
		struct rank_channel *best = NULL;
		uint32_t process = c->process, most = 0;

		for (; c < end && c->process == process; c++) {
			struct rank_fit fit;

			if (process == first->process || c->taken ||
			    !rank_channels_fit(m->ranks->calls.items, first, c,
					       m->ranks->clock_error_ns, &fit) ||
			    fit.matched_nr <= most)
				continue;
			most = fit.matched_nr;
			best = c;
			best->offset = fit.offset;
		}
		if (!best)
			continue;
		best->taken = true;
		if (vec_push(&m->group, *best))
			return -ENOMEM;
	}
	return 0;
}

/* Whether two calls can be one collective, also by time. */
static bool meet(const struct matching *m, const struct rank_call *a, const struct rank_call *b)
{
	uint64_t error_ns = m->ranks->clock_error_ns;

	return rank_calls_alike(a, b) && (!a->joins_all || (a->start_ns <= b->end_ns + error_ns &&
							    b->start_ns <= a->end_ns + error_ns));
}

/* Finds the call of a group's channel that can be the first channel's call n, or NULL. Where a call
 * was lost, the others match their neighbours, as far as time tells. */
static struct rank_call *member(const struct matching *m, struct rank_channel *c, int64_t n)
{
	struct rank_call *calls = m->ranks->calls.items;
	const struct rank_call *first = &calls[m->group.items[0].first + n];

	for (int64_t i = 0; i <= 2 * LOST_MAX && (!i || first->joins_all); i++) {
		int64_t apart = i % 2 ? (i + 1) / 2 : -i / 2, at = n + c->offset + apart;

		if (at < c->next || at >= (int64_t)c->nr || !meet(m, first, &calls[c->first + at]))
			continue;
		c->offset += apart;
		c->next = at + 1;
		return &calls[c->first + at];
	}
	return NULL;
}

/* Finds the arrivals of the last `nr` calls in ranks->members. */
struct arrivals {
	uint64_t first_ns, last_ns, before_last_ns, end_ns;
	uint32_t last;
};

static struct arrivals arrivals_of(const struct ranks *ranks, uint32_t first, uint32_t nr)
{
	struct arrivals a = {.first_ns = UINT64_MAX, .end_ns = UINT64_MAX, .last = TL_NONE};

	for (uint32_t i = first; i < first + nr; i++) {
		const struct rank_call *c = &ranks->calls.items[ranks->members.items[i]];

		a.first_ns = c->start_ns < a.first_ns ? c->start_ns : a.first_ns;
		a.end_ns = c->end_ns < a.end_ns ? c->end_ns : a.end_ns;
		if (a.last == TL_NONE || c->start_ns > a.last_ns) {
			a.before_last_ns = a.last_ns;
			a.last_ns = c->start_ns;
			a.last = ranks->members.items[i];
		} else if (c->start_ns > a.before_last_ns) {
			a.before_last_ns = c->start_ns;
		}
	}
	return a;
}

/* Adds a collective. Its members are the last ones in ranks->members. */
static int add_collective(struct matching *m, uint32_t first)
{
	struct ranks *ranks = m->ranks;
	struct rank_collective one = {
		.first = first, .nr = (uint32_t)ranks->members.nr - first, .last = TL_NONE};
	struct arrivals a = arrivals_of(ranks, first, one.nr);
	const struct rank_call *call = &ranks->calls.items[a.last];

	/* Calls whose times such a collective cannot have are none. */
	if (call->joins_all && a.last_ns > a.end_ns + ranks->clock_error_ns) {
		ranks->members.nr = first;
		return 0;
	}
	for (uint32_t i = first; i < first + one.nr; i++)
		ranks->calls.items[ranks->members.items[i]].collective =
			(uint32_t)ranks->collectives.nr;
	if (call->joins_all) {
		one.spread_ns = a.last_ns - a.first_ns;
		one.behind_ns = a.last_ns - a.before_last_ns;
		if (one.behind_ns > ranks->clock_error_ns)
			one.last = a.last;
		else
			ranks->undecided_nr++;
	}
	return vec_push(&ranks->collectives, one);
}

static int add_group(struct matching *m)
{
	int err = 0;

	for (int64_t n = 0; n < (int64_t)m->group.items[0].nr && !err; n++) {
		uint32_t first = (uint32_t)m->ranks->members.nr;

		for (size_t i = 0; i < m->group.nr && !err; i++) {
			const struct rank_call *call = member(m, &m->group.items[i], n);

			if (!call || call->is_peer)
				continue;
			err = vec_push(&m->ranks->members,
				       (uint32_t)(call - m->ranks->calls.items));
		}
		if (err)
			return err;
		if (m->ranks->members.nr - first < m->group.nr)
			m->ranks->members.nr = first;
		else
			err = add_collective(m, first);
	}
	return err;
}

static int match(struct matching *m)
{
	int err = find_channels(m);

	for (size_t i = 0; i < m->channels.nr && !err; i++) {
		if (m->channels.items[i].taken)
			continue;
		err = find_group(m, &m->channels.items[i]);
		if (!err && m->group.nr > 1)
			err = add_group(m);
	}
	return err;
}

/* Sorts by the start of the first member, and adapts references. */
static int sort_collectives(struct ranks *ranks)
{
	size_t nr = ranks->collectives.nr;
	CLEANUP(cleanup_free) struct sort_item *items = malloc((nr + 1) * sizeof(*items));
	CLEANUP(cleanup_free)
	struct rank_collective *sorted = malloc((nr + 1) * sizeof(*sorted));
	int err;

	if (!items || !sorted)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++) {
		uint32_t call = ranks->members.items[ranks->collectives.items[i].first];

		items[i] = (struct sort_item){ranks->calls.items[call].start_ns, (uint32_t)i};
	}
	err = sort_items(items, nr);
	for (size_t i = 0; i < nr && !err; i++) {
		sorted[i] = ranks->collectives.items[items[i].index];
		for (uint32_t k = sorted[i].first; k < sorted[i].first + sorted[i].nr; k++)
			ranks->calls.items[ranks->members.items[k]].collective = (uint32_t)i;
	}
	for (size_t i = 0; i < nr && !err; i++)
		ranks->collectives.items[i] = sorted[i];
	return err;
}

/* ---- sums ---- */

static void add_up(struct ranks *ranks)
{
	const struct rank_call *calls = ranks->calls.items;
	struct rank_row *row = NULL;

	for (size_t i = 0; i < ranks->calls.nr; i++) {
		const struct rank_collective *one;

		if (!row || row->process != calls[i].process)
			row = rank_calls_row(ranks, calls[i].process);
		if (!row || calls[i].is_peer)
			continue;
		if (calls[i].collective == TL_NONE) {
			row->unmatched_nr++;
			continue;
		}
		one = &ranks->collectives.items[calls[i].collective];
		if (one->last == TL_NONE)
			continue;
		if (calls[one->last].start_ns > calls[i].start_ns)
			row->waited_ns += calls[one->last].start_ns - calls[i].start_ns;
		if (one->last != i)
			continue;
		row->last_nr++;
		row->behind_ns += one->behind_ns;
	}
}

/* ---- steps ---- */

static const struct tl_step_series *first_series(const struct timeline *t,
						 const struct ranks *ranks)
{
	for (size_t i = 0; i < ranks->rows.nr; i++)
		for (size_t k = 0; k < t->step_series.nr; k++)
			if (t->step_series.items[k].process == ranks->rows.items[i].process)
				return &t->step_series.items[k];
	return NULL;
}

/* When the collective began in this process; 0: the process has no part in it. */
static uint64_t start_in(const struct ranks *ranks, const struct rank_collective *one,
			 uint32_t process)
{
	for (uint32_t i = one->first; i < one->first + one->nr; i++) {
		const struct rank_call *c = &ranks->calls.items[ranks->members.items[i]];

		if (c->process == process)
			return c->start_ns;
	}
	return 0;
}

/* Sorts the collectives by their begin in this process. */
static int order_by_start(const struct ranks *ranks, uint32_t process, struct sort_item **ret_items)
{
	struct sort_item *items = malloc((ranks->collectives.nr + 1) * sizeof(*items));

	if (!items)
		return -ENOMEM;
	for (size_t i = 0; i < ranks->collectives.nr; i++)
		items[i] = (struct sort_item){
			start_in(ranks, &ranks->collectives.items[i], process), (uint32_t)i};
	*ret_items = items;
	return sort_items(items, ranks->collectives.nr);
}

static void close_step(struct ranks *ranks, struct rank_step *step, uint64_t *behind)
{
	for (size_t i = 0; i < ranks->rows.nr; i++) {
		if (behind[i] > step->behind_ns) {
			step->behind_ns = behind[i];
			step->last = (uint32_t)i;
		}
		behind[i] = 0;
	}
}

/* `behind` has an element for each row. */
static void add_to_step(struct ranks *ranks, const struct rank_collective *one,
			struct rank_step *step, uint64_t *behind)
{
	step->collectives_nr++;
	if (one->last != TL_NONE)
		behind[rank_calls_row(ranks, ranks->calls.items[one->last].process) -
		       ranks->rows.items] += one->behind_ns;
}

static int find_steps(const struct timeline *t, struct ranks *ranks)
{
	CLEANUP(cleanup_free) uint64_t *behind = calloc(ranks->rows.nr + 1, sizeof(*behind));
	CLEANUP(cleanup_free) struct sort_item *order = NULL;
	const struct tl_step_series *series = first_series(t, ranks);
	size_t at = 0;
	int err;

	if (!behind)
		return -ENOMEM;
	err = series ? order_by_start(ranks, series->process, &order) : 0;
	for (uint32_t i = 0; series && i < series->nr && !err; i++) {
		const struct tl_step *s = &t->steps.items[series->first + i];
		struct rank_step step = {s->number, s->start_ns, s->end_ns, 0, TL_NONE, 0};

		for (; at < ranks->collectives.nr && order[at].key < s->end_ns; at++)
			if (order[at].key >= s->start_ns)
				add_to_step(ranks, &ranks->collectives.items[order[at].index],
					    &step, behind);
		close_step(ranks, &step, behind);
		err = vec_push(&ranks->steps, step);
	}
	return err;
}

/* ---- all of it ---- */

static void read_clock(const struct timeline *t, struct ranks *ranks)
{
	const char *clocks = recording__meta(t->recording, "clocks");
	const char *error = recording__meta(t->recording, "clock_error_ns");

	ranks->one_clock = !clocks || strcmp(clocks, "time of day") != 0;
	ranks->clock_error_ns = error ? strtoull(error, NULL, 10) : 0;
	if (ranks->clock_error_ns >> 62)
		ranks->one_clock = false;
}

int ranks__find(const struct timeline *t, struct ranks *ranks)
{
	CLEANUP(matching__done) struct matching m = {.t = t, .ranks = ranks};
	int err;

	*ranks = (struct ranks){0};
	read_clock(t, ranks);
	err = add_rows(t, ranks);
	err = err ? err : rank_calls_find(t, ranks);
	drop_helpers(ranks);
	err = err ? err : rank_calls_overlap(t, ranks);
	if (err || !ranks->one_clock)
		return err;
	err = match(&m);
	err = err ? err : sort_collectives(ranks);
	if (err)
		return err;
	add_up(ranks);
	return find_steps(t, ranks);
}
