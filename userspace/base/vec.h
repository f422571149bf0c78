/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Growable arrays. A vector is any struct with items, nr and cap; all zero is an empty one. The
 * owner frees it with vec_done(). Growing moves the items: keep indexes, not pointers.
 */
#ifndef GP_BASE_VEC_H
#define GP_BASE_VEC_H

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#define VEC(type)                                                                                  \
	struct {                                                                                   \
		type *items;                                                                       \
		size_t nr;                                                                         \
		size_t cap;                                                                        \
	}

/* Of vec_reserve(): makes room for `more` items beyond nr. 0 or -ENOMEM. */
int vec_reserve_raw(void **items, size_t nr, size_t *cap, size_t item_bytes, size_t more);

/* Room for `more` further items. 0 or -ENOMEM. */
#define vec_reserve(v, more)                                                                       \
	vec_reserve_raw((void **)&(v)->items, (v)->nr, &(v)->cap, sizeof(*(v)->items), (more))

/* Appends a copy of `item`. 0 or -ENOMEM. */
#define vec_push(v, item)                                                                          \
	({                                                                                         \
		int vec_err_ = vec_reserve((v), 1);                                                \
		if (!vec_err_)                                                                     \
			(v)->items[(v)->nr++] = (item);                                            \
		vec_err_;                                                                          \
	})

/* Frees the items and makes the vector empty. */
#define vec_done(v)                                                                                \
	do {                                                                                       \
		free((v)->items);                                                                  \
		(v)->items = NULL;                                                                 \
		(v)->nr = (v)->cap = 0;                                                            \
	} while (0)

#endif /* GP_BASE_VEC_H */
