/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A file held by a handle from its planning, or from a look at it, until its probes are attached.
 * The kernel attaches by path, and what a path of the target's leads to may have changed meanwhile;
 * the path of a handle leads to the same file for as long as that is open.
 */
#ifndef GP_PROBE_PLAN_PLANNED_FILE_H
#define GP_PROBE_PLAN_PLANNED_FILE_H

#include "inspect/access/process_file.h"

#include <stdbool.h>
#include <sys/stat.h>

struct planned_file {
	int fd;
	char path[PROCESS_FILE_PATH_MAX]; /* of the handle; good in this process only */
};

/* Takes a handle of the regular file at `path`; `as` (may be NULL) is what it has to be, unchanged.
 * 0, -ESTALE: it is another one by now, or another -errno. planned_file__done() in any case. */
int planned_file__open(const char *path, const struct stat *as, struct planned_file *ret_file);
void planned_file__done(struct planned_file *f);

/* Whether both are the same file, and nobody has written to it in between: a number that is used
 * again for another file is another file. */
bool planned_file_is_same(const struct stat *a, const struct stat *b);

#endif /* GP_PROBE_PLAN_PLANNED_FILE_H */
