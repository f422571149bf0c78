/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Finds how far the clocks of two groups of ranks are apart, from the collectives that they share:
 * in one that joins all ranks, no rank's part ends before every rank's part has begun.
 */
#include "timeline/analysis/rank_calls.h"

#include <errno.h>
#include <stdlib.h>

#include "base/banned.h"
#include "base/cleanup.h"

struct bounds {
	int64_t low_ns, high_ns;
	uint64_t nr, next_ns;
	VEC(int64_t) ends; /* between the ends of matching calls */
};

static void bounds__done(struct bounds *b)
{
	vec_done(&b->ends);
}

static int add_ends(struct bounds *b, const struct rank_call *calls, const struct rank_channel *x,
		    const struct rank_channel *y, const struct rank_fit *fit)
{
	int64_t from, to;

	rank_channels_overlap(x, y, fit->offset, &from, &to);
	for (int64_t i = from; i < to; i++) {
		const struct rank_call *one = &calls[x->first + i];

		if (one->joins_all &&
		    vec_push(&b->ends,
			     ns_between(one->end_ns, calls[y->first + i + fit->offset].end_ns)))
			return -ENOMEM;
	}
	return 0;
}

static int compare(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

/* Parts of a collective end at about the same time, so the median difference is the likeliest
 * within the bounds. */
static int conclude(struct bounds *b, struct rank_clock *ret_clock)
{
	int64_t shift, below, above;

	if (!b->ends.nr || b->low_ns > b->high_ns)
		return -ENOENT;
	qsort(b->ends.items, b->ends.nr, sizeof(*b->ends.items), compare);
	shift = b->ends.items[b->ends.nr / 2];
	shift = shift < b->low_ns ? b->low_ns : shift > b->high_ns ? b->high_ns : shift;
	below = shift - b->low_ns;
	above = b->high_ns - shift;
	*ret_clock = (struct rank_clock){.shift_ns = shift,
					 .error_ns = (uint64_t)(below > above ? below : above),
					 .nr = b->ends.nr,
					 .next_ns = b->next_ns};
	return 0;
}

/* Moves to the next channel; returns its first call, NULL at the end. */
static const struct rank_call *next_channel(const struct ranks *r, struct rank_channel *channel)
{
	uint32_t at = channel->first + channel->nr, nr = 1;
	const struct rank_call *calls = r->calls.items;

	if (at >= r->calls.nr)
		return NULL;
	while (at + nr < r->calls.nr && calls[at + nr].process == calls[at].process &&
	       calls[at + nr].channel == calls[at].channel)
		nr++;
	*channel = (struct rank_channel){.process = calls[at].process, .first = at, .nr = nr};
	return &calls[at];
}

static int compare_clocks(const struct ranks *r, const bool *a, const bool *b, uint64_t within_ns,
			  struct bounds *bounds)
{
	struct rank_channel x = {.nr = 0};

	while (next_channel(r, &x)) {
		struct rank_channel y = {.nr = 0};
		struct rank_fit fit;
		uint64_t next_ns;

		while (a[x.process] && next_channel(r, &y)) {
			if (!b[y.process] || y.process == x.process ||
			    !rank_channels_align(r->calls.items, &x, &y, within_ns, &fit, &next_ns))
				continue;
			if (add_ends(bounds, r->calls.items, &x, &y, &fit))
				return -ENOMEM;
			bounds->low_ns = fit.low_ns > bounds->low_ns ? fit.low_ns : bounds->low_ns;
			bounds->high_ns =
				fit.high_ns < bounds->high_ns ? fit.high_ns : bounds->high_ns;
			bounds->next_ns = next_ns < bounds->next_ns ? next_ns : bounds->next_ns;
		}
	}
	return 0;
}

int ranks_clock(const struct timeline *t, const bool *a, const bool *b, uint64_t within_ns,
		struct rank_clock *ret_clock)
{
	CLEANUP(bounds__done)
	struct bounds bounds = {.low_ns = INT64_MIN, .high_ns = INT64_MAX, .next_ns = UINT64_MAX};
	CLEANUP(ranks__done) struct ranks ranks = {.one_clock = false};
	int err = ranks__find(t, &ranks);

	err = err ? err : compare_clocks(&ranks, a, b, within_ns, &bounds);
	return err ? err : conclude(&bounds, ret_clock);
}
