/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Open addressing with linear probing; a deletion moves later entries back, so there are no
 * tombstones and the load stays below three quarters.
 */
#include "base/hash.h"

#include <errno.h>
#include <stdlib.h>

uint64_t hash_mix(uint64_t key)
{
	key ^= key >> 33;
	key *= 0xff51afd7ed558ccdULL;
	key ^= key >> 33;
	key *= 0xc4ceb9fe1a85ec53ULL;
	key ^= key >> 33;
	return key;
}

uint64_t hash_bytes(const void *data, size_t bytes)
{
	const unsigned char *p = data;
	uint64_t h = 0xcbf29ce484222325ULL;

	for (size_t i = 0; i < bytes; i++)
		h = (h ^ p[i]) * 0x100000001b3ULL;
	return hash_mix(h);
}

static size_t slot_of(const struct hash *h, uint64_t key, bool *ret_found)
{
	size_t i = hash_mix(key) & (h->cap - 1);

	while (h->used[i] && h->slots[i].key != key)
		i = (i + 1) & (h->cap - 1);
	*ret_found = h->used[i];
	return i;
}

uint64_t *hash__find(const struct hash *h, uint64_t key)
{
	bool found;
	size_t i;

	if (!h->cap)
		return NULL;
	i = slot_of(h, key, &found);
	return found ? &h->slots[i].value : NULL;
}

static int grow(struct hash *h)
{
	struct hash bigger = {.cap = h->cap ? 2 * h->cap : 16, .nr = h->nr};
	bool found;

	bigger.slots = calloc(bigger.cap, sizeof(*bigger.slots));
	bigger.used = calloc(bigger.cap, 1);
	if (!bigger.slots || !bigger.used) {
		free(bigger.slots);
		free(bigger.used);
		return -ENOMEM;
	}
	for (size_t i = 0; i < h->cap; i++) {
		size_t to;

		if (!h->used[i])
			continue;
		to = slot_of(&bigger, h->slots[i].key, &found);
		bigger.slots[to] = h->slots[i];
		bigger.used[to] = 1;
	}
	hash__done(h);
	*h = bigger;
	return 0;
}

int hash__set(struct hash *h, uint64_t key, uint64_t value)
{
	bool found;
	size_t i;

	if (4 * (h->nr + 1) > 3 * h->cap) {
		int err = grow(h);

		if (err)
			return err;
	}
	i = slot_of(h, key, &found);
	h->slots[i] = (struct hash_slot){.key = key, .value = value};
	h->used[i] = 1;
	h->nr += !found;
	return 0;
}

bool hash__delete(struct hash *h, uint64_t key, uint64_t *ret_value)
{
	size_t mask = h->cap - 1, hole, i;
	bool found;

	if (!h->cap)
		return false;
	hole = slot_of(h, key, &found);
	if (!found)
		return false;
	if (ret_value)
		*ret_value = h->slots[hole].value;
	for (i = (hole + 1) & mask; h->used[i]; i = (i + 1) & mask) {
		size_t home = hash_mix(h->slots[i].key) & mask;

		/* An entry may move into the hole if its home is not between the two. */
		if (((i - home) & mask) < ((i - hole) & mask))
			continue;
		h->slots[hole] = h->slots[i];
		hole = i;
	}
	h->used[hole] = 0;
	h->nr--;
	return true;
}

void hash__delete_high(struct hash *h, uint32_t high)
{
	for (size_t i = 0; i < h->cap; i++)
		/* Another one may move to where it was. */
		while (h->used[i] && h->slots[i].key >> 32 == high)
			(void)hash__delete(h, h->slots[i].key, NULL);
}

void hash__done(struct hash *h)
{
	free(h->slots);
	free(h->used);
	*h = (struct hash){0};
}
