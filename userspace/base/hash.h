/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * An open-addressing hash table from a 64-bit key to a 64-bit value. All zero is an empty table.
 * The owner calls hash__done().
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

/* Hashes bytes to 64 bits (FNV-1a, then mixed), the same on every machine. */
uint64_t hash_bytes(const void *data, size_t bytes);

/* Mixes the bits of a key. */
uint64_t hash_mix(uint64_t key);

/* Returns a pointer to the key's value, or NULL. Valid until the next set or delete. */
uint64_t *hash__find(const struct hash *h, uint64_t key);

/* Sets the key's value. 0 or -ENOMEM. */
int hash__set(struct hash *h, uint64_t key, uint64_t value);

/* Deletes the key. Returns whether it was there, and its value in *ret_value (may be NULL). */
bool hash__delete(struct hash *h, uint64_t key, uint64_t *ret_value);

/* Deletes all keys with this upper half. */
void hash__delete_high(struct hash *h, uint32_t high);

void hash__done(struct hash *h);

#endif /* GP_BASE_HASH_H */
