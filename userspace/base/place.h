/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Where a file is to be: its folder, opened once, and its name there. A path is walked name by
 * name. Where gpuprof is root, a symbolic link counts only if nobody but root and the caller can
 * have put it there; everything that follows is done relative to the open folder, so a name that is
 * swapped later leads nowhere.
 */
#ifndef GP_BASE_PLACE_H
#define GP_BASE_PLACE_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

struct file_owner {
	uid_t uid;
	gid_t gid;
};

/* Whose the files are that gpuprof makes: the user who called sudo (SUDO_UID and SUDO_GID, both
 * sane) where gpuprof is root, else its own effective user. */
struct file_owner file_owner_get(void);

struct file_folder {
	int fd; /* O_PATH; -1: none */
};

/* Opens the directory `path`. 0 or -errno; -ELOOP: a link in it does not count. */
int file_folder__open(struct file_folder *f, const char *path);
/* The same for the directory that the file `path` lies in. */
int file_folder__open_of(struct file_folder *f, const char *path);
/* The same for a directory that is made where it is missing: 0700, the caller's. */
int file_folder__make(struct file_folder *f, const char *path);
/* Whether nobody but root and the caller can put files there; always where gpuprof is not root. */
bool file_folder__is_safe(const struct file_folder *f);
/* Fine to call twice, and on one that could not be opened. */
void file_folder__done(struct file_folder *f);

struct file_place {
	int folder;	 /* O_PATH; -1: the path names an open file of ours */
	int own;	 /* the number of that, else -1 */
	char *name;	 /* in the folder */
	bool exists;	 /* `st` says what is there */
	bool is_trusted; /* and nobody but root and the caller can have put it there */
	struct stat st;
};

/* Finds the place of `path`, relative to the folder (NULL: the working directory). Through a link
 * as the last name it is where that leads. 0 or -errno: -ELOOP if a link does not count, -EISDIR if
 * the path can only be a directory's. */
int file_place__open(struct file_place *p, const struct file_folder *from, const char *path);
/* Fine to call twice. */
void file_place__done(struct file_place *p);

#endif /* GP_BASE_PLACE_H */
