/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The library inside the target: the file that holds it, and its mappings. It is known by the
 * file's name, which carries a hash of the image. The file is one in memory or, where the target is
 * refused that, one whose name in a folder has been taken away.
 */
#ifndef GP_INJECT_INJECTED_LIBRARY_H
#define GP_INJECT_INJECTED_LIBRARY_H

#include "inject/memory_map.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define INJECTED_NAME_MAX 48

/* "NAME-HASH" for an image. */
void injected_library_name(const char *name, const void *image, size_t bytes,
			   char ret_name[INJECTED_NAME_MAX]);

struct injected_library {
	char name[INJECTED_NAME_MAX]; /* of the file */
	bool loaded;
	uint64_t start, end; /* of its mappings, if loaded */
	dev_t device;
	ino_t inode;
	int fd; /* the target's descriptor, or -1 */
};

/* Looks for it. `name` is "NAME-HASH", or "NAME-" for any image of that name. *ret_library is
 * filled in either way; returns 0 or -errno. */
int injected_library_find(pid_t pid, const struct memory_map *map, const char *name,
			  struct injected_library *ret_library);

/* Fills the file behind descriptor `fd` of the target's thread with the image, and seals it if it
 * is a memory file. For a process that is ended when this takes too long: the file's file system
 * may. -EBADF if that is another file by now, -EEXIST if it holds something else and cannot be
 * changed. 0 or -errno. */
int injected_library_fill(pid_t tid, int fd, const char *name, const void *image, size_t bytes);

#endif /* GP_INJECT_INJECTED_LIBRARY_H */
