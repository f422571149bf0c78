/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Taking a payload apart from front to back. Private to this room.
 */
#ifndef GP_RECORDING_CURSOR_H
#define GP_RECORDING_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* What is left of a payload. A take that does not fit clears ok, and every later one fails. */
struct cursor {
	const uint8_t *at;
	size_t left;
	bool ok;
};

/* The next bytes, borrowed; NULL: there are not as many. */
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

/* Copies the next bytes; `to` stays as it is where there are not as many. */
static inline void take_copy(struct cursor *c, void *to, size_t bytes)
{
	const void *from = take(c, bytes);

	if (from)
		memcpy(to, from, bytes);
}

#endif /* GP_RECORDING_CURSOR_H */
