/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Whether a traced process still maps a file. What is kept of a file that nobody maps goes after a
 * while.
 */
#ifndef GP_CAPTURE_SYMBOLS_FILE_USERS_H
#define GP_CAPTURE_SYMBOLS_FILE_USERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The caller's; process_table__file_users() makes one. */
struct file_users {
	bool (*is_mapped)(const void *arg, dev_t device, ino_t inode);
	const void *arg;
};

/* A recording begins: returns whether what is kept of a file is to go. It is if no process maps the
 * file, and if it was not used in the two recordings before: *idle_nr counts those, and who uses
 * the file sets that to 0. */
static inline bool file_users__let_go(const struct file_users *u, dev_t device, ino_t inode,
				      uint32_t *idle_nr)
{
	if (u->is_mapped(u->arg, device, inode))
		*idle_nr = 0;
	return (*idle_nr)++ >= 2;
}

#endif /* GP_CAPTURE_SYMBOLS_FILE_USERS_H */
