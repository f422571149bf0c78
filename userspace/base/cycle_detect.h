/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Finds the cycle that repeats in a sequence of symbols.
 */
#ifndef GP_BASE_CYCLE_DETECT_H
#define GP_BASE_CYCLE_DETECT_H

#include <stddef.h>
#include <stdint.h>

struct cycle {
	size_t first;  /* index at which the repetition begins */
	size_t run;    /* number of symbols in the repetition */
	size_t length; /* symbols of one cycle; `run` holds at least three cycles */
};

/* Only so many symbols are considered. */
#define PERIOD_SYMBOLS_MAX 65536

/* Finds the shortest cycle that repeats at least three times in a row and makes up at least half of
 * the sequence. 0, -ENOENT if there is none, or -ENOMEM. Takes time linear in `nr`. */
int cycle_detect(const uint32_t *symbols, size_t nr, struct cycle *ret_period);

#endif /* GP_BASE_CYCLE_DETECT_H */
