/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * An open-addressing table of pointers into an arena that only grows. Both lie in one anonymous
 * mapping, whose untouched pages cost nothing. A slot is set once, by compare-and-swap, and never
 * changes.
 */
#include "collector/runtime/names.h"

#include "collector/runtime/compat.h"

#include <string.h>
#include <sys/mman.h>

#define NAMES_SLOTS	  32768 /* a power of two */
#define NAMES_MAX	  24000
#define NAMES_ARENA_BYTES (25U << 20) /* room for NAMES_MAX of 1,000 bytes */

_Static_assert(sizeof(struct gp_ev_name) + NAMES_TEXT_BYTES + 1 <= GP_RING_EVENT_BYTES,
	       "the longest name fits into an event");

struct names {
	uint32_t first_id;
	uint32_t next_id;
	uint32_t used_bytes;
	struct name *slots[NAMES_SLOTS];
	unsigned char arena[NAMES_ARENA_BYTES] __attribute__((aligned(8)));
};

struct names *names__new(uint32_t first_id)
{
	void *p = mmap(NULL, sizeof(struct names), PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct names *n = p;

	if (p == MAP_FAILED)
		return NULL;
	n->first_id = first_id;
	return n;
}

void names__free(struct names *n)
{
	if (n)
		(void)munmap(n, sizeof(*n));
}

static uint64_t hash_text(const char *text, uint32_t *ret_bytes)
{
	uint64_t h = 0xcbf29ce484222325ULL;
	uint32_t i;

	for (i = 0; i < NAMES_TEXT_BYTES && text[i]; i++)
		h = (h ^ (unsigned char)text[i]) * 0x100000001b3ULL;
	*ret_bytes = i;
	return h ^ (h >> 29);
}

/* The size in the arena, padded to 8 bytes. */
static uint32_t bytes_of(uint32_t text_bytes)
{
	return (uint32_t)(sizeof(struct name) + text_bytes + 1 + 7) & ~7U;
}

static bool is_full(const struct names *n, uint32_t text_bytes)
{
	return __atomic_load_n(&n->next_id, __ATOMIC_RELAXED) >= NAMES_MAX ||
	       __atomic_load_n(&n->used_bytes, __ATOMIC_RELAXED) + bytes_of(text_bytes) >
		       NAMES_ARENA_BYTES;
}

static struct name *add(struct names *n, uint64_t hash, const char *text, uint32_t bytes)
{
	uint32_t need = bytes_of(bytes);
	uint32_t at = __atomic_load_n(&n->used_bytes, __ATOMIC_RELAXED);
	struct name *name;

	do {
		if (at + need > NAMES_ARENA_BYTES)
			return NULL;
	} while (!__atomic_compare_exchange_n(&n->used_bytes, &at, at + need, true,
					      __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	name = (struct name *)(n->arena + at);
	name->hash = hash;
	name->id = n->first_id + __atomic_fetch_add(&n->next_id, 1, __ATOMIC_RELAXED);
	name->bytes = bytes;
	memcpy(name->text, text, bytes);
	name->text[bytes] = '\0';
	return name;
}

/* Reserves in the ring first: a name that cannot be announced must not use up the arena. */
static struct name *announce(struct names *n, struct ring_writer *w, uint64_t hash,
			     const char *text, uint32_t bytes)
{
	struct gp_ev_name ev = {.head.kind = GP_EV_NAME};
	size_t padded = (bytes + 7U) & ~(size_t)7;
	struct name *name;
	uint64_t position;

	if (is_full(n, bytes)) {
		ring_writer__count(w, GP_LOSS_NAMES, 1);
		return NULL;
	}
	if (!ring_writer__reserve(w, sizeof(ev) + padded, &position))
		return NULL;
	name = add(n, hash, text, bytes);
	if (name) {
		ev.name_id = name->id;
		ev.text_bytes = bytes;
	}
	ring_writer__fill(w, position, 0, &ev, sizeof(ev));
	/* The ring's free bytes are zero, so the padding is. */
	ring_writer__fill(w, position, sizeof(ev), text, bytes);
	ring_writer__commit(w, position);
	return name;
}

static bool equal(const struct name *name, uint64_t hash, const char *text, uint32_t bytes)
{
	return name->hash == hash && name->bytes == bytes && !memcmp(name->text, text, bytes);
}

const struct name *names__get(struct names *n, struct ring_writer *w, const char *text)
{
	struct name *mine = NULL;
	uint32_t bytes;
	uint64_t hash = hash_text(text, &bytes);
	uint32_t i = (uint32_t)hash & (NAMES_SLOTS - 1);

	for (;; i = (i + 1) & (NAMES_SLOTS - 1)) {
		struct name *there = __atomic_load_n(&n->slots[i], __ATOMIC_ACQUIRE);

		if (!there && !mine) {
			mine = announce(n, w, hash, text, bytes);
			if (!mine)
				return NULL;
		}
		if (!there && __atomic_compare_exchange_n(&n->slots[i], &there, mine, false,
							  __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			return mine;
		/* Another thread has taken the slot. If that was for the same name, it has two ids
		 * now. */
		if (equal(there, hash, text, bytes))
			return there;
	}
}
