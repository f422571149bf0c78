/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Parses /proc/PID/maps. The process chooses the file names in it.
 */
#ifndef GP_INSPECT_ACCESS_MAPS_H
#define GP_INSPECT_ACCESS_MAPS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* One mapping. */
struct map_line {
	uint64_t start, end, offset;
	dev_t device;
	ino_t inode;
	bool executable;
	bool deleted; /* the name ended in " (deleted)", which an existing file's name may do too */
	const char *path; /* points into the line; "" for none; without " (deleted)" */
};

/* Parses one line (zero-terminated, no newline) and modifies it. 0, or -EBADMSG for a line that the
 * kernel does not write. */
int map_line_parse(char *line, struct map_line *ret_map);

/* Whether the mappings are in ascending order without overlap. The kernel writes the list page by
 * page; if the process merges or grows mappings in between, a page can repeat what the one before
 * has listed, in part or in full. */
bool maps_in_order(const char *text);

/* Reads /proc/PID/maps, and again while it is not in order. *ret_text is zero-terminated and the
 * caller's to free. 0, or -errno: -EAGAIN if the process changes it too quickly, -EFBIG for more
 * than 256 MiB. */
int maps_read(pid_t pid, char **ret_text);

#endif /* GP_INSPECT_ACCESS_MAPS_H */
