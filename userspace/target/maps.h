/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The text of /proc/PID/maps. File names in it are the target's choice.
 */
#ifndef GP_TARGET_MAPS_H
#define GP_TARGET_MAPS_H

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

#endif /* GP_TARGET_MAPS_H */
