/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A set of small numbers. Room doubles, so that filling it is constant time on average.
 */
#include "base/bits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool bits__has(const struct bits *b, size_t i)
{
	return i / 64 < b->nr && (b->words[i / 64] >> i % 64 & 1);
}

int bits__set(struct bits *b, size_t i)
{
	size_t need = i / 64 + 1, nr = need > 2 * b->nr ? need : 2 * b->nr;
	uint64_t *grown;

	if (need > b->nr) {
		grown = reallocarray(b->words, nr, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		memset(grown + b->nr, 0, (nr - b->nr) * sizeof(*grown));
		b->words = grown;
		b->nr = nr;
	}
	b->words[i / 64] |= 1ULL << i % 64;
	return 0;
}

void bits__done(struct bits *b)
{
	free(b->words);
	*b = (struct bits){0};
}
