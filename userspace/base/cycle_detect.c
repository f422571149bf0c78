/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Finds the cycle by distances: in a cyclic sequence the distance between a symbol and one of its
 * next occurrences is the cycle's length. So it only tries the distances between the rarest
 * symbols, and counts for each how long the sequence equals itself shifted by it.
 */
#include "base/cycle_detect.h"

#include <errno.h>
#include <stdlib.h>

#include "base/banned.h"
#include "base/cleanup.h"
#include "base/hash.h"

#define REPEATS_MIN 3
#define RARE_MAX    8  /* kinds of symbols to try */
#define APART_MAX   16 /* the most occurrences of one kind in one cycle */

struct kind {
	uint32_t symbol;
	uint32_t nr;
	uint32_t first;
};

static int by_rarity(const void *a, const void *b)
{
	const struct kind *x = a, *y = b;

	if (x->nr != y->nr)
		return x->nr < y->nr ? -1 : 1;
	return x->first < y->first ? -1 : x->first > y->first;
}

/* Lists the kinds of symbols, rarest first; the caller frees. */
static int count_kinds(const uint32_t *symbols, size_t nr, struct kind **ret_kinds, size_t *ret_nr)
{
	CLEANUP(cleanup_free) struct kind *kinds = malloc(nr * sizeof(*kinds));
	CLEANUP(hash__done) struct hash kind_of = {0};
	size_t kinds_nr = 0;

	if (!kinds)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++) {
		const uint64_t *known = hash__find(&kind_of, symbols[i]);

		if (known) {
			kinds[*known].nr++;
			continue;
		}
		if (hash__set(&kind_of, symbols[i], kinds_nr))
			return -ENOMEM;
		kinds[kinds_nr++] = (struct kind){symbols[i], 1, (uint32_t)i};
	}
	qsort(kinds, kinds_nr, sizeof(*kinds), by_rarity);
	*ret_kinds = TAKE(kinds);
	*ret_nr = kinds_nr;
	return 0;
}

/* Finds the longest stretch that equals itself shifted by `length`. */
static struct cycle try_length(const uint32_t *symbols, size_t nr, size_t length)
{
	struct cycle best = {.length = length};
	size_t same = 0;

	for (size_t i = 0; i + length < nr; i++) {
		same = symbols[i] == symbols[i + length] ? same + 1 : 0;
		if (same && same + length > best.run)
			best = (struct cycle){i + 1 - same, same + length, length};
	}
	return best;
}

/* Several cycles form a cycle too: a longer one must explain clearly more. */
static void prefer(struct cycle *best, const struct cycle *other, size_t nr)
{
	if (other->run < REPEATS_MIN * other->length || other->run * 2 < nr)
		return;
	if (!best->length ||
	    (other->length < best->length ? other->run + other->run / 4 >= best->run
					  : other->run > best->run + best->run / 4))
		*best = *other;
}

/* Tries the distances from the middle occurrence of this kind to later ones. */
static void try_kind(const uint32_t *symbols, size_t nr, const struct kind *kind,
		     struct cycle *best)
{
	size_t at = kind->first, left = kind->nr / 2, apart = 0;

	for (; left && at < nr; at++)
		left -= symbols[at] == kind->symbol;
	if (!at)
		return;
	for (size_t i = at--; i < nr && apart < APART_MAX; i++) {
		struct cycle one;

		if (symbols[i] != kind->symbol)
			continue;
		apart++;
		if (i - at == best->length || (i - at) * REPEATS_MIN > nr)
			continue;
		one = try_length(symbols, nr, i - at);
		prefer(best, &one, nr);
	}
}

int cycle_detect(const uint32_t *symbols, size_t nr, struct cycle *ret_period)
{
	CLEANUP(cleanup_free) struct kind *kinds = NULL;
	struct cycle best = {0};
	size_t kinds_nr, tried = 0;
	int err;

	if (nr > PERIOD_SYMBOLS_MAX)
		nr = PERIOD_SYMBOLS_MAX;
	if (nr < REPEATS_MIN)
		return -ENOENT;
	err = count_kinds(symbols, nr, &kinds, &kinds_nr);
	if (err)
		return err;
	for (size_t i = 0; i < kinds_nr && tried < RARE_MAX; i++) {
		if (kinds[i].nr < REPEATS_MIN)
			continue;
		try_kind(symbols, nr, &kinds[i], &best);
		tried++;
	}
	if (!best.length)
		return -ENOENT;
	*ret_period = best;
	return 0;
}
