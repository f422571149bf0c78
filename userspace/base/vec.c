/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Growable arrays: the one function behind the macros. Capacity doubles, so pushing is constant
 * time on average.
 */
#include "base/vec.h"

#include <stdint.h>

int vec_reserve_raw(void **items, size_t nr, size_t *cap, size_t item_bytes, size_t more)
{
	size_t want;
	void *grown;

	if (__builtin_add_overflow(nr, more, &want))
		return -ENOMEM;
	if (want <= *cap)
		return 0;
	if (want < 2 * *cap)
		want = 2 * *cap;
	if (want < 16)
		want = 16;
	if (want > SIZE_MAX / item_bytes)
		return -ENOMEM;
	grown = realloc(*items, want * item_bytes);
	if (!grown)
		return -ENOMEM;
	*items = grown;
	*cap = want;
	return 0;
}
