/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Files as a process sees them: paths are walked inside its root directory, symbolic links too, so
 * that no link of the target's leads out of it. Inside target/ only.
 */
#ifndef GP_TARGET_ROOTED_H
#define GP_TARGET_ROOTED_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Opens for reading what the O_PATH descriptor `at` stands for, if it is a regular file: opening a
 * device or a FIFO could do something or block. A descriptor, -ENOEXEC if it is something else, or
 * another -errno. */
int regular_open(int at, uint64_t *ret_bytes);

/* At most max_bytes of the regular file `path`; *ret_text is terminated and the caller's to free.
 * 0 or -errno. */
int rooted_read(pid_t pid, const char *path, size_t max_bytes, char **ret_text);

/* Calls fn for each name in the directory until it returns non-zero. 0, what fn returned, or
 * -errno. */
int rooted_each_name(pid_t pid, const char *path, int (*fn)(const char *name, void *arg),
		     void *arg);

#endif /* GP_TARGET_ROOTED_H */
