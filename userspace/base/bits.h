/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A growable set of small numbers, one bit each. All zero is an empty set. The owner calls
 * bits__done().
 */
#ifndef GP_BASE_BITS_H
#define GP_BASE_BITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bits {
	uint64_t *words;
	size_t nr; /* of words */
};

/* Whether `i` is in the set. */
bool bits__has(const struct bits *b, size_t i);

/* Puts `i` into the set. 0 or -ENOMEM. */
int bits__set(struct bits *b, size_t i);

void bits__done(struct bits *b);

#endif /* GP_BASE_BITS_H */
