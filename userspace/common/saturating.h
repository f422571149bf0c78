/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Sums of numbers that come from a recording or a traced process and may have any value.
 */
#ifndef GP_COMMON_SATURATING_H
#define GP_COMMON_SATURATING_H

#include <stdint.h>

/* a + b, or UINT64_MAX if that does not fit. */
static inline uint64_t add_saturating(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

#endif /* GP_COMMON_SATURATING_H */
