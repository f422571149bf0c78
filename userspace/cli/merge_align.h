/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * How the clocks of the machines go against each other whose recordings were merged.
 */
#ifndef GP_CLI_MERGE_ALIGN_H
#define GP_CLI_MERGE_ALIGN_H

#include "recording/merge.h"

/* Of `parts`, which were merged by the times of day into `path`: what is to be added to the time of
 * day of each, in `shifts_ns` and *ret_clocks (its shifts aside). 0; -ENOENT: they share a clock,
 * or what they did together does not tell; or -errno with a reason. */
int merge_align(struct recording *const *parts, size_t parts_nr, const char *path,
		int64_t *shifts_ns, struct merge_clocks *ret_clocks, struct reason *why);

#endif /* GP_CLI_MERGE_ALIGN_H */
