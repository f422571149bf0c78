/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The text of /proc/PID/maps. File names in it are the target's choice.
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
	bool deleted;	  /* the name ended in " (deleted)", which a living file's may, too */
	const char *path; /* in the line's own memory, "" for none; without " (deleted)" */
};

/* Takes one line (terminated by a zero, no newline) apart; changes it. 0, or -EBADMSG for what the
 * kernel does not write. */
int map_line_parse(char *line, struct map_line *ret_map);

/* Whether each mapping of the text begins where the one before ends, or later. The kernel gives the
 * list a page at a time; where a process joins or grows mappings between two pages, the second one
 * begins with what the first has told already, in part or again. */
bool maps_in_order(const char *text);

/* Reads /proc/PID/maps, again where it is not in order. *ret_text is terminated and the caller's to
 * free. 0, or -errno: -EAGAIN if the process changes it too quickly, -EFBIG for more than 256 MiB.
 */
int maps_read(pid_t pid, char **ret_text);

#endif /* GP_INSPECT_ACCESS_MAPS_H */
