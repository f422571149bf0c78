/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Holds a file open by a handle from its planning until its probes are attached. The kernel
 * attaches by path, and the process may have changed where its path leads; the handle's path leads
 * to the same file for as long as it is open.
 */
#ifndef GP_PROBE_PLAN_PLANNED_FILE_H
#define GP_PROBE_PLAN_PLANNED_FILE_H

#include "inspect/access/process_file.h"

#include <stdbool.h>
#include <sys/stat.h>

struct planned_file {
	int fd;
	char path[PROCESS_FILE_PATH_MAX]; /* of the handle; valid in this process only */
};

/* Opens a handle to the regular file at `path`; `as` (may be NULL) is what it must be, unchanged.
 * 0, -ESTALE: it is another file by now, or another -errno. Call planned_file__done() in any case.
 */
int planned_file__open(const char *path, const struct stat *as, struct planned_file *ret_file);
void planned_file__done(struct planned_file *f);

/* Whether both are the same file, and nobody has written to it in between: a number that is used
 * again for another file is another file. */
bool planned_file_is_same(const struct stat *a, const struct stat *b);

#endif /* GP_PROBE_PLAN_PLANNED_FILE_H */
