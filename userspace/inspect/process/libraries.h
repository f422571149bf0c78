/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Finds the libraries of a process in its mappings. Only for inspect/.
 */
#ifndef GP_INSPECT_PROCESS_LIBRARIES_H
#define GP_INSPECT_PROCESS_LIBRARIES_H

#include "base/reason.h"
#include "inspect/process/process.h"

#include <stddef.h>

/* Reads /proc/PID/maps. A library that `old` (may be NULL) has at the same address is not opened
 * again; the others get `since`. The caller frees with libraries_free(). 0 or -errno with a reason.
 */
int libraries_read(pid_t pid, const struct target_library *old, size_t old_nr, uint32_t since,
		   struct reason *why, struct target_library **ret_libraries, size_t *ret_nr);
void libraries_free(struct target_library *libraries, size_t nr);

/* Whether both hold the same files at the same addresses with the same knowledge of them. */
bool libraries_equal(const struct target_library *a, size_t a_nr, const struct target_library *b,
		     size_t b_nr);

/* Returns the part of a kernel-given `path` below the process's root directory. The kernel gives
 * paths from our root, so a chroot's prefix is cut. Borrowed from `path`. */
const char *path_below_root(const char *path, const char *root);

/* Reads where /proc/PID/root points; "" if it is our root or unknown. */
void root_of_process(pid_t pid, char *ret_root, size_t bytes);

#endif /* GP_INSPECT_PROCESS_LIBRARIES_H */
