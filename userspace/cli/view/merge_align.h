/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Measures how the clocks of several machines differ, from what their ranks did together.
 */
#ifndef GP_CLI_VIEW_MERGE_ALIGN_H
#define GP_CLI_VIEW_MERGE_ALIGN_H

#include "cli/view/merged.h"

/* What is to be added to the time of day of each of the parts, in `shifts_ns` (one for each) and
 * *ret_clocks (its shifts aside), from what they hold together, which is put together in memory for
 * that. 0; -ENOENT: they share a clock, or what they did together does not tell; or -errno with a
 * reason. */
int merge_align(const struct merged *m, int64_t *shifts_ns, struct merge_clocks *ret_clocks,
		struct reason *why);

#endif /* GP_CLI_VIEW_MERGE_ALIGN_H */
