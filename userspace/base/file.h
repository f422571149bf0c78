/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Files whole: reading small ones, and replacing one so that a reader sees the old or the new
 * content and never a half.
 */
#ifndef GP_BASE_FILE_H
#define GP_BASE_FILE_H

#include "base/place.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* Reads at most max_bytes of a file (a /proc file too). *ret_text is terminated and the caller's to
 * free. Returns 0, -EFBIG if it is longer, or another -errno. */
int file_read(const char *path, size_t max_bytes, char **ret_text, size_t *ret_bytes);

/* Reads `bytes` of what comes, through short reads and EINTR; fewer only at the end. How many, or
 * -errno. */
ssize_t file_read_all(int fd, void *to, size_t bytes);
/* The same from that offset of a file on. */
ssize_t file_read_all_at(int fd, uint64_t offset, void *to, size_t bytes);

/* Writes all, through short writes and EINTR. 0 or -errno. */
int file_write_all(int fd, const void *data, size_t bytes);

/* Opens a regular file to read. Nothing else is opened, not for a moment: a pipe would hold us, a
 * device act. A descriptor, -EINVAL if it is none, or another -errno. */
int file_open_regular(const char *path);

/* What follows the last '/' of a path, borrowed from it; the whole if there is none. */
const char *file_base_name(const char *path);

/* Whether both paths lead to one file, or would if it were made. False where memory is short and
 * there is none. */
bool file_is_same(const char *a, const char *b);

/* The words for an error of what follows: strerror()'s, but where links, pipes and devices are
 * refused what to do about it. */
const char *file_error(int err);

/* Whether root may write to that path: 0, -ELOOP or -EISNAM as below. What else stands against it
 * is not asked. */
int file_check(const char *path);

/* A file being written beside its final place. */
struct file_new {
	int fd;
	struct file_place at;
	char *temporary; /* its name there until it has its own; NULL: it has, or is written
			    directly */
	int slot;	 /* of the table for signal handlers; -1: none */
};

/* One that file_new__done() may be called on before it was opened. */
#define FILE_NEW_NONE ((struct file_new){.fd = -1, .at.folder = -1, .slot = -1})

/* Begins to write `path`: the bytes go to f->fd. The file is the caller's (see base/place.h) and
 * 0600; where one is replaced that nobody else can have put there it keeps owner, group and mode.
 * Through a symbolic link it is what that leads to; where that is an open file of ours
 * (/dev/stdout), a pipe or a device, it is written to directly.
 * 0 or -errno: -ELOOP for a link that others may have put there for root, -EISNAM for a pipe or
 * device of theirs, -ENXIO for a pipe that nobody reads from. */
int file_new__open(struct file_new *f, const char *path);
/* The same, for a path relative to the folder; NULL: the working directory. */
int file_new__open_in(struct file_new *f, const struct file_folder *folder, const char *path);
/* Puts the file in its place (rename); f->fd stays open. 0 or -errno. */
int file_new__place(struct file_new *f);
/* Closes the file and puts it in its place, if it is not there yet. On failure nothing is left
 * behind. 0 or -errno. */
int file_new__commit(struct file_new *f);
/* Takes a file away that was not put in its place. Fine to call after commit. */
void file_new__done(struct file_new *f);

/* In a signal handler whose process ends now: takes all temporary files away. */
void file_new__abandon_all(void);

#endif /* GP_BASE_FILE_H */
