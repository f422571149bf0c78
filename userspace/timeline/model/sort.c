/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Radix sort, least significant byte pair first. Digits that are the same in all keys cost one
 * look: the times of a capture differ in three of four digits at most.
 */
#include "timeline/model/sort.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "base/cleanup.h"

#define DIGIT_BITS 11
#define DIGIT_NR   (1U << DIGIT_BITS)

static inline size_t digit(uint64_t key, unsigned int shift)
{
	return (key >> shift) & (DIGIT_NR - 1);
}

/* One pass; `at` is zero on entry. */
static void pass(const struct sort_item *from, struct sort_item *to, size_t nr, unsigned int shift,
		 size_t *at)
{
	size_t sum = 0;

	for (size_t i = 0; i < nr; i++)
		at[digit(from[i].key, shift)]++;
	for (size_t d = 0; d < DIGIT_NR; d++) {
		size_t here = at[d];

		at[d] = sum;
		sum += here;
	}
	for (size_t i = 0; i < nr; i++)
		to[at[digit(from[i].key, shift)]++] = from[i];
}

int sort_items(struct sort_item *items, size_t nr)
{
	CLEANUP(cleanup_free) struct sort_item *other = NULL;
	CLEANUP(cleanup_free) size_t *at = NULL;
	struct sort_item *from = items, *to;
	uint64_t differs = 0;
	bool sorted = true;

	for (size_t i = 1; i < nr; i++) {
		differs |= items[i].key ^ items[0].key;
		sorted = sorted && items[i - 1].key <= items[i].key;
	}
	if (sorted)
		return 0;
	other = malloc(nr * sizeof(*other));
	at = malloc(DIGIT_NR * sizeof(*at));
	if (!other || !at)
		return -ENOMEM;
	to = other;
	for (unsigned int shift = 0; shift < 64; shift += DIGIT_BITS) {
		struct sort_item *swap = from;

		if (!digit(differs, shift))
			continue;
		memset(at, 0, DIGIT_NR * sizeof(*at));
		pass(from, to, nr, shift, at);
		from = to;
		to = swap;
	}
	if (from != items)
		memcpy(items, from, nr * sizeof(*items));
	return 0;
}
