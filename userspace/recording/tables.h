/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Helpers for the reader's tables: texts from a payload, and vectors in which the last item of a
 * key counts. Private to this room.
 */
#ifndef GP_RECORDING_TABLES_H
#define GP_RECORDING_TABLES_H

#include "base/hash.h"
#include "base/intern.h"
#include "base/vec.h"
#include "recording/cursor.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

/* Takes an interned text. NULL with ok cleared (damage) or ok set (out of memory). */
static inline const char *take_string(struct intern *texts, struct cursor *c)
{
	uint32_t bytes = 0;
	const char *text;

	take_copy(c, &bytes, sizeof(bytes));
	text = take(c, bytes);
	if (text && memchr(text, '\0', bytes)) {
		c->ok = false;
		return NULL;
	}
	return text ? intern__get(texts, text, bytes) : NULL;
}

/* Why a take returned NULL: -EBADMSG if the payload is damaged, else -ENOMEM. */
static inline int take_error(const struct cursor *c)
{
	return c->ok ? -ENOMEM : -EBADMSG;
}

/* Finds the index of `key`, or enters `next` for it. 0 or -ENOMEM. */
static inline int index_of(struct hash *h, uint64_t key, size_t next, size_t *ret_index)
{
	const uint64_t *old = hash__find(h, key);

	*ret_index = old ? (size_t)*old : next;
	return old ? 0 : hash__set(h, key, next);
}

/* Sets item `i` of a vector: replaces it, or appends it. 0 or -ENOMEM. */
#define vec_put(v, i, item)                                                                        \
	({                                                                                         \
		int put_err_ = 0;                                                                  \
		if ((i) < (v)->nr)                                                                 \
			(v)->items[i] = (item);                                                    \
		else                                                                               \
			put_err_ = vec_push((v), (item));                                          \
		put_err_;                                                                          \
	})

#endif /* GP_RECORDING_TABLES_H */
