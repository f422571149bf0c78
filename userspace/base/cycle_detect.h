/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The cycle in a sequence of symbols.
 */
#ifndef GP_BASE_CYCLE_DETECT_H
#define GP_BASE_CYCLE_DETECT_H

#include <stddef.h>
#include <stdint.h>

struct cycle {
	size_t first;  /* where the repetition begins */
	size_t run;    /* so many symbols belong to it */
	size_t length; /* of one cycle; run is at least three of them */
};

/* More symbols than these are not looked at. */
#define PERIOD_SYMBOLS_MAX 65536

/* The shortest cycle that repeats at least three times in a row and that makes up at least half of
 * the sequence. 0, -ENOENT if there is none, or -ENOMEM. Work grows linearly with nr. */
int cycle_detect(const uint32_t *symbols, size_t nr, struct cycle *ret_period);

#endif /* GP_BASE_CYCLE_DETECT_H */
