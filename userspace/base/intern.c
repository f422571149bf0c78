/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Interned strings: an arena of blocks, and a hash from the text's hash to the first string with
 * it; strings of equal hash are chained.
 */
#include "base/intern.h"

#include "base/hash.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES 65536

struct block {
	struct block *next;
	size_t used;
	size_t cap;
	char bytes[];
};

struct entry {
	struct entry *next;
	size_t bytes;
	char text[];
};

struct intern {
	struct block *blocks;
	struct hash by_hash;
};

struct intern *intern__new(void)
{
	return calloc(1, sizeof(struct intern));
}

void intern__free(struct intern *in)
{
	if (!in)
		return;
	while (in->blocks) {
		struct block *next = in->blocks->next;

		free(in->blocks);
		in->blocks = next;
	}
	hash__done(&in->by_hash);
	free(in);
}

static void *arena_get(struct intern *in, size_t bytes)
{
	size_t need = (bytes + 7) & ~(size_t)7;
	struct block *b = in->blocks;

	if (!b || b->cap - b->used < need) {
		size_t cap = need > BLOCK_BYTES ? need : BLOCK_BYTES;

		b = malloc(sizeof(*b) + cap);
		if (!b)
			return NULL;
		*b = (struct block){.next = in->blocks, .cap = cap};
		in->blocks = b;
	}
	b->used += need;
	return b->bytes + b->used - need;
}

const char *intern__get(struct intern *in, const char *text, size_t bytes)
{
	uint64_t h = hash_bytes(text, bytes);
	uint64_t *first = hash__find(&in->by_hash, h);
	struct entry *e;

	for (e = first ? (struct entry *)(uintptr_t)*first : NULL; e; e = e->next)
		if (e->bytes == bytes && !memcmp(e->text, text, bytes))
			return e->text;
	e = arena_get(in, sizeof(*e) + bytes + 1);
	if (!e)
		return NULL;
	e->next = first ? (struct entry *)(uintptr_t)*first : NULL;
	e->bytes = bytes;
	memcpy(e->text, text, bytes);
	e->text[bytes] = '\0';
	if (hash__set(&in->by_hash, h, (uintptr_t)e))
		return NULL;
	return e->text;
}

const char *intern__str(struct intern *in, const char *text)
{
	return intern__get(in, text, strlen(text));
}
