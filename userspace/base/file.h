/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Reads whole small files, and replaces files so that a reader sees either the old or the new
 * content.
 */
#ifndef GP_BASE_FILE_H
#define GP_BASE_FILE_H

#include "base/place.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* Reads a file of at most max_bytes, in /proc too. *ret_text is zero-terminated and the caller's to
 * free. 0, -EFBIG if it is longer, or another -errno. */
int file_read(const char *path, size_t max_bytes, char **ret_text, size_t *ret_bytes);

/* Reads `bytes` bytes, through short reads and EINTR; fewer only at the end of the file. Returns
 * how many, or -errno. */
ssize_t file_read_all(int fd, void *to, size_t bytes);
/* Reads the same way from an offset of the file. */
ssize_t file_read_all_at(int fd, uint64_t offset, void *to, size_t bytes);

/* Writes all, through short writes and EINTR. 0 or -errno. */
int file_write_all(int fd, const void *data, size_t bytes);

/* Opens a regular file for reading. Anything else is refused without opening it: opening a pipe can
 * block and opening a device can have effects. Returns a descriptor, -EINVAL if it is not a regular
 * file, or another -errno. */
int file_open_regular(const char *path);

/* Returns what follows the last '/' of the path, borrowed from it; the whole path if it has none.
 */
const char *file_base_name(const char *path);

/* Whether both paths lead to one file, or would once it is created. False if memory runs out before
 * the file exists. */
bool file_is_same(const char *a, const char *b);

/* Explains an error of the functions below: strerror()'s text, or what to do about a refused link,
 * pipe or device. */
const char *file_error(int err);

/* Checks whether root may write to the path: 0, or -ELOOP or -EISNAM as file_new__open(). Does not
 * check for other obstacles. */
int file_check(const char *path);

/* A file that is written beside its final place. */
struct file_new {
	int fd;
	struct file_place at;
	char *temporary; /* its name until it is put in place; NULL: it is in place, or is written
			    directly */
	int slot;	 /* in the signal handlers' table; -1: none */
};

/* An unopened file, on which file_new__done() may be called. */
#define FILE_NEW_NONE ((struct file_new){.fd = -1, .at.folder = -1, .slot = -1})

/* Begins to write `path`: write the bytes to f->fd. A new file belongs to the caller (see
 * base/place.h) with mode 0600; a file that only root or the caller can have put there keeps its
 * owner, group and mode. A symbolic link is followed. An open file of ours (/dev/stdout), a pipe or
 * a device is written to directly. 0 or -errno: -ELOOP for a link that others may have put there
 * for root, -EISNAM for a pipe or device of theirs, -ENXIO for a pipe without a reader. */
int file_new__open(struct file_new *f, const char *path);
/* Does the same for a path relative to the folder; NULL: the working directory. */
int file_new__open_in(struct file_new *f, const struct file_folder *folder, const char *path);
/* Renames the file into its place; f->fd stays open. 0 or -errno. */
int file_new__place(struct file_new *f);
/* Closes the file and puts it in its place if it is not there yet. A failure leaves nothing behind.
 * 0 or -errno. */
int file_new__commit(struct file_new *f);
/* Removes the file unless it was put in its place. May be called after commit. */
void file_new__done(struct file_new *f);

/* For signal handlers of a process that is about to end: removes all temporary files. */
void file_new__abandon_all(void);

#endif /* GP_BASE_FILE_H */
