/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Writes several recordings as one file.
 */
#ifndef GP_CLI_VIEW_MERGED_H
#define GP_CLI_VIEW_MERGED_H

#include "base/reason.h"
#include "base/vec.h"
#include "recording/merge.h"
#include "recording/recording.h"

/* All zero is none. */
struct merged {
	VEC(struct recording *) parts;	   /* owned */
	const struct merge_clocks *clocks; /* NULL: the times of day are all there is; borrowed */
	const char *counter; /* NULL, or one that the result has beside theirs, and its */
	uint64_t count;
};

/* Adds the recording in this file. 0 or -errno with a reason. */
int merged__open(struct merged *m, const char *path, struct reason *why);

/* Writes the result, which appears under its name when it is whole: the last of the path, in the
 * folder (NULL: in that of the path). 0 or -errno with a reason. */
int merged__write(const struct merged *m, const struct file_folder *folder, const char *path,
		  struct reason *why);

void merged__done(struct merged *m);

#endif /* GP_CLI_VIEW_MERGED_H */
