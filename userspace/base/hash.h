/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Open-addressing hash table from a 64-bit key to a 64-bit value. All zero is an empty one; the
 * owner calls hash__done().
 */
#ifndef GP_BASE_HASH_H
#define GP_BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hash_slot {
	uint64_t key;
	uint64_t value;
};

struct hash {
	struct hash_slot *slots;
	uint8_t *used;
	size_t nr;
	size_t cap; /* a power of two, or 0 */
};

/* 64-bit hash of bytes (FNV-1a, then mixed); the same on every machine. */
uint64_t hash_bytes(const void *data, size_t bytes);

/* Spreads the bits of a key. */
uint64_t hash_mix(uint64_t key);

/* Where the value of `key` lies, or NULL. Valid until the next set or delete. */
uint64_t *hash__find(const struct hash *h, uint64_t key);

/* Sets key to value. Returns 0 or -ENOMEM. */
int hash__set(struct hash *h, uint64_t key, uint64_t value);

/* Takes the key out; returns whether it was there, its value in *ret_value (may be NULL). */
bool hash__delete(struct hash *h, uint64_t key, uint64_t *ret_value);

/* Takes out all keys whose upper half this is. */
void hash__delete_high(struct hash *h, uint32_t high);

void hash__done(struct hash *h);

#endif /* GP_BASE_HASH_H */
