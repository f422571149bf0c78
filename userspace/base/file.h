/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Files whole: reading small ones, and replacing one so that a reader sees the old or the new
 * content and never a half.
 */
#ifndef GP_BASE_FILE_H
#define GP_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Reads at most max_bytes of a file (a /proc file too). *ret_text is terminated and the caller's to
 * free. Returns 0, -EFBIG if it is longer, or another -errno. */
int file_read(const char *path, size_t max_bytes, char **ret_text, size_t *ret_bytes);

/* Writes all, through short writes and EINTR. 0 or -errno. */
int file_write_all(int fd, const void *data, size_t bytes);

/* Creates `path`, or empties the regular file that is there (which keeps its owner and mode), for
 * writing; a device or pipe is opened as it is. A new file belongs to the caller of sudo. Returns a
 * descriptor or -errno. */
int file_create(const char *path);

/* What follows the last '/' of a path, borrowed from it; the whole if there is none. */
const char *file_base_name(const char *path);

/* Whether both paths lead to one file, or would if it were made. False where memory is short and
 * there is none. */
bool file_is_same(const char *a, const char *b);

/* A file being written beside its final place. */
struct file_new {
	int fd;
	char *path;
	char *temporary;
};

/* Begins to write `path`: the bytes go to f->fd. Through a symbolic link it is what that leads to;
 * where that is an open file of ours (/dev/stdout), or no regular file, it is written to directly.
 * 0 or -errno. */
int file_new__open(struct file_new *f, const char *path);
/* Puts the file in its place (rename). On failure nothing is left behind. 0 or -errno. */
int file_new__commit(struct file_new *f);
/* Without commit: takes the temporary file away. Fine to call after commit. */
void file_new__done(struct file_new *f);

/* In a signal handler whose process ends now: takes all temporary files away. */
void file_new__abandon_all(void);

#endif /* GP_BASE_FILE_H */
