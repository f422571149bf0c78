/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Takes a payload apart from front to back. Private to this room.
 */
#ifndef GP_RECORDING_CURSOR_H
#define GP_RECORDING_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The rest of a payload. A take that does not fit clears ok; every later one fails. */
struct cursor {
	const uint8_t *at;
	size_t left;
	bool ok;
};

/* Returns the next bytes, borrowed; NULL if too few are left. */
static inline const void *take(struct cursor *c, size_t bytes)
{
	const void *p = c->at;

	if (!c->ok || bytes > c->left) {
		c->ok = false;
		return NULL;
	}
	c->at += bytes;
	c->left -= bytes;
	return p;
}

/* Copies the next bytes. If too few are left, `to` stays as it is. */
static inline void take_copy(struct cursor *c, void *to, size_t bytes)
{
	const void *from = take(c, bytes);

	if (from)
		memcpy(to, from, bytes);
}

#endif /* GP_RECORDING_CURSOR_H */
