/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Words of a procedure linkage table: by which a loaded library calls a function that another
 * library could have put in place of its own.
 */
#ifndef GP_COLLECTOR_RUNTIME_PLT_SLOTS_H
#define GP_COLLECTOR_RUNTIME_PLT_SLOTS_H

#include <stdbool.h>
#include <stdint.h>

struct slot {
	const char *name;   /* the function's symbol */
	uintptr_t function; /* that the word has to lead to */
	uintptr_t *word;    /* NULL: not found */
	int protection;	    /* of its page, as mprotect() takes it */
};

/* Finds the words for slots[i].name in the library that is loaded at `base`, which must stay. False
 * if one of them is not there exactly once, does not lead to slots[i].function, or cannot be
 * written. */
bool slots_find(uintptr_t base, struct slot *slots, int nr);

/* If the word is `from`, it is `to` afterwards, at once for all threads; its page is writable for
 * that moment. False: it is neither, or cannot be written. */
bool slot_set(const struct slot *s, uintptr_t from, uintptr_t to);

#endif /* GP_COLLECTOR_RUNTIME_PLT_SLOTS_H */
