/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The injected library in the process: its file and its mappings. It is recognised by the file's
 * name, which contains a hash of the image. The file is a memory file or, where the process is
 * refused that, an unlinked file in a folder.
 */
#ifndef GP_INJECT_INJECTED_LIBRARY_H
#define GP_INJECT_INJECTED_LIBRARY_H

#include "inject/memory_map.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define INJECTED_NAME_MAX 48

/* Writes "NAME-HASH" for an image. */
void injected_library_name(const char *name, const void *image, size_t bytes,
			   char ret_name[INJECTED_NAME_MAX]);

struct injected_library {
	char name[INJECTED_NAME_MAX]; /* of the file */
	bool loaded;
	uint64_t start, end; /* of its mappings, if loaded */
	dev_t device;
	ino_t inode;
	int fd; /* the process's descriptor, or -1 */
};

/* Searches for the library. `name` is "NAME-HASH", or "NAME-" for any image of that name. Fills in
 * *ret_library in any case. 0 or -errno. */
int injected_library_find(pid_t pid, const struct memory_map *map, const char *name,
			  struct injected_library *ret_library);

/* Fills the file behind descriptor `fd` of the process's thread with the image, and seals it if it
 * is a memory file. Its file system may block, so call it in a process that a timer kills. 0 or
 * -errno: -EBADF if it is another file by now, -EEXIST if it holds something else and cannot be
 * changed. */
int injected_library_fill(pid_t tid, int fd, const char *name, const void *image, size_t bytes);

#endif /* GP_INJECT_INJECTED_LIBRARY_H */
