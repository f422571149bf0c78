/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Measures how the clocks of several machines differ, from what their ranks did together.
 */
#ifndef GP_CLI_VIEW_MERGE_ALIGN_H
#define GP_CLI_VIEW_MERGE_ALIGN_H

#include "cli/view/merged.h"

/* Finds what to add to each part's time of day, from the collectives in all of them, which it
 * merges in memory. Fills `shifts_ns` (one for each part) and *ret_clocks but for its shifts.
 * 0; -ENOENT: they share a clock, or their collectives do not determine it; or -errno with a
 * reason. */
int merge_align(const struct merged *m, int64_t *shifts_ns, struct merge_clocks *ret_clocks,
		struct reason *why);

#endif /* GP_CLI_VIEW_MERGE_ALIGN_H */
