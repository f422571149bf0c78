/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Words of a library's procedure linkage table. The library calls functions through them that
 * another library might replace.
 */
#ifndef GP_COLLECTOR_RUNTIME_PLT_SLOTS_H
#define GP_COLLECTOR_RUNTIME_PLT_SLOTS_H

#include <stdbool.h>
#include <stdint.h>

struct slot {
	const char *name;   /* the function's symbol */
	uintptr_t function; /* the function that the word must hold */
	uintptr_t *word;    /* NULL: not found */
	int protection;	    /* that of the word's page, as mprotect() takes it */
};

/* Finds the words for slots[i].name in the library that is loaded at `base`, which must stay
 * loaded. False if one of them does not exist exactly once, does not hold slots[i].function, or
 * lies in no writable segment. */
bool slots_find(uintptr_t base, struct slot *slots, int nr);

/* Changes the word from `from` to `to`, atomically for all threads. Its page is writable for that
 * moment. False: the word was not `from`, or cannot be written. */
bool slot_set(const struct slot *s, uintptr_t from, uintptr_t to);

#endif /* GP_COLLECTOR_RUNTIME_PLT_SLOTS_H */
