/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Matches the calls of two ranks. Their recordings begin at different points of one sequence of
 * collectives, so call n of one is call n + offset of the other. Candidates for the offset are
 * calls that meet in time; each is tried on all calls. Their number, and so the work, is bounded
 * whatever a recording holds.
 */
#include "timeline/analysis/rank_calls.h"

#include <errno.h>
#include <stdlib.h>

#include "base/banned.h"
#include "base/cleanup.h"

#define SAMPLES_NR	24 /* calls for which partners are searched */
#define PARTNERS_NR	12 /* candidates per call, in each direction */
#define PARTNERS_FAR_NR 256
#define CANDIDATES_NR	1024

struct candidates {
	int64_t partners_nr;
	int64_t offsets[CANDIDATES_NR];
	size_t nr;
};

bool rank_calls_alike(const struct rank_call *a, const struct rank_call *b)
{
	return a->kind == b->kind && (!a->elements || !b->elements || a->elements == b->elements) &&
	       (!a->shapes || !b->shapes || a->shapes == b->shapes);
}

static int64_t distance(const struct rank_fit *f)
{
	return f->low_ns > 0 ? f->low_ns : f->high_ns < 0 ? -f->high_ns : 0;
}

void rank_channels_overlap(const struct rank_channel *a, const struct rank_channel *b,
			   int64_t offset, int64_t *ret_from, int64_t *ret_to)
{
	int64_t to = (int64_t)b->nr - offset;

	*ret_from = offset < 0 ? -offset : 0;
	*ret_to = to < (int64_t)a->nr ? to : (int64_t)a->nr;
}

static struct rank_fit try_offset(const struct rank_call *calls, const struct rank_channel *a,
				  const struct rank_channel *b, int64_t offset, int64_t within_ns)
{
	struct rank_fit fit = {.offset = offset, .low_ns = INT64_MIN, .high_ns = INT64_MAX};
	int64_t from, to;

	rank_channels_overlap(a, b, offset, &from, &to);
	for (int64_t i = from; i < to; i++) {
		const struct rank_call *x = &calls[a->first + i];
		const struct rank_call *y = &calls[b->first + i + offset];
		int64_t low = ns_between(x->start_ns, y->end_ns),
			high = ns_between(x->end_ns, y->start_ns);

		fit.compared_nr++;
		if (!rank_calls_alike(x, y))
			continue;
		if (x->joins_all && (low > within_ns || high < -within_ns))
			continue;
		fit.matched_nr++;
		if (!x->joins_all)
			continue;
		fit.low_ns = low > fit.low_ns ? low : fit.low_ns;
		fit.high_ns = high < fit.high_ns ? high : fit.high_ns;
	}
	return fit;
}

static void add_candidate(struct candidates *c, int64_t offset)
{
	for (size_t i = 0; i < c->nr; i++)
		if (c->offsets[i] == offset)
			return;
	if (c->nr < CANDIDATES_NR)
		c->offsets[c->nr++] = offset;
}

/* Finds the first of b's calls that begins after this time. */
static int64_t first_after(const struct rank_call *calls, const struct rank_channel *b,
			   uint64_t time_ns)
{
	int64_t low = 0, high = b->nr;

	while (low < high) {
		int64_t middle = low + (high - low) / 2;

		if (calls[b->first + middle].start_ns <= time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Adds those of b's calls, before and after, that are nearest to a's call n. */
static void find_partners(const struct rank_call *calls, const struct rank_channel *a,
			  const struct rank_channel *b, int64_t n, int64_t within_ns,
			  struct candidates *c)
{
	const struct rank_call *x = &calls[a->first + n];
	int64_t at = first_after(calls, b, x->end_ns);
	int64_t from = at - c->partners_nr, to = at + c->partners_nr;

	for (int64_t i = from < 0 ? 0 : from; i < to && i < (int64_t)b->nr; i++) {
		const struct rank_call *y = &calls[b->first + i];

		if (rank_calls_alike(x, y) && ns_between(x->start_ns, y->end_ns) <= within_ns &&
		    ns_between(x->end_ns, y->start_ns) >= -within_ns)
			add_candidate(c, i - n);
	}
}

static void find_candidates(const struct rank_call *calls, const struct rank_channel *a,
			    const struct rank_channel *b, int64_t within_ns, struct candidates *c)
{
	int64_t step = a->nr / SAMPLES_NR + 1;
	int64_t next = 0;

	for (int64_t n = 0; n < (int64_t)a->nr; n++)
		if (n >= next && calls[a->first + n].joins_all) {
			find_partners(calls, a, b, n, within_ns, c);
			next = n + step;
		}
}

bool rank_channels_fit(const struct rank_call *calls, const struct rank_channel *a,
		       const struct rank_channel *b, uint64_t error_ns, struct rank_fit *ret_fit)
{
	struct candidates candidates = {.partners_nr = PARTNERS_NR};
	struct rank_fit best = {.matched_nr = 0};

	find_candidates(calls, a, b, (int64_t)error_ns, &candidates);
	for (size_t i = 0; i < candidates.nr; i++) {
		struct rank_fit fit =
			try_offset(calls, a, b, candidates.offsets[i], (int64_t)error_ns);

		if (fit.matched_nr > best.matched_nr && 2 * fit.matched_nr > fit.compared_nr)
			best = fit;
	}
	*ret_fit = best;
	return best.matched_nr;
}

bool rank_channels_align(const struct rank_call *calls, const struct rank_channel *a,
			 const struct rank_channel *b, uint64_t within_ns, struct rank_fit *ret_fit,
			 uint64_t *ret_next_ns)
{
	struct candidates candidates = {.partners_nr = PARTNERS_FAR_NR};
	int64_t least = INT64_MAX, next = INT64_MAX;

	find_candidates(calls, a, b, (int64_t)within_ns, &candidates);
	for (size_t i = 0; i < candidates.nr; i++) {
		struct rank_fit fit =
			try_offset(calls, a, b, candidates.offsets[i], (int64_t)within_ns);
		int64_t needs = distance(&fit);

		if (fit.matched_nr != fit.compared_nr || fit.low_ns > fit.high_ns)
			continue;
		next = needs < least ? least : needs < next ? needs : next;
		if (needs >= least)
			continue;
		least = needs;
		*ret_fit = fit;
	}
	*ret_next_ns = next == INT64_MAX ? UINT64_MAX : (uint64_t)(next - least);
	return least != INT64_MAX;
}
