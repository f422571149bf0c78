/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Sums of numbers that a recording or a target says, and that may be any.
 */
#ifndef GP_BASE_SATURATING_H
#define GP_BASE_SATURATING_H

#include <stdint.h>

/* The sum, UINT64_MAX if it is larger. */
static inline uint64_t add_saturating(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

#endif /* GP_BASE_SATURATING_H */
