/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The place of a file: its folder, opened once, and its name there. A path is walked name by name.
 * When gpuprof is root it follows a symbolic link only if nobody but root and the caller can have
 * put it there. Everything later is relative to the open folder, so a name that is swapped has no
 * effect.
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

/* Returns who owns the files that gpuprof creates: if it is root, the user who called sudo
 * (SUDO_UID and SUDO_GID, both valid), else its own effective user. */
struct file_owner file_owner_get(void);

struct file_folder {
	int fd; /* O_PATH; -1: none */
};

/* Opens the directory `path`. 0 or -errno; -ELOOP: an untrusted link in it. */
int file_folder__open(struct file_folder *f, const char *path);
/* Opens the directory that contains the file `path`, the same way. */
int file_folder__open_of(struct file_folder *f, const char *path);
/* Opens a directory the same way and creates it if it is missing: mode 0700, owned by the caller.
 */
int file_folder__make(struct file_folder *f, const char *path);
/* Whether nobody but root and the caller can put files there; always true if gpuprof is not root.
 */
bool file_folder__is_safe(const struct file_folder *f);
/* May be called twice, and on a folder that could not be opened. */
void file_folder__done(struct file_folder *f);

struct file_place {
	int folder;	 /* O_PATH; -1: the path names an open file of ours */
	int own;	 /* the number of that, else -1 */
	char *name;	 /* in the folder */
	bool exists;	 /* `st` describes the existing file */
	bool is_trusted; /* nobody but root and the caller can have put it there */
	struct stat st;
};

/* Finds the place of `path`, relative to the folder (NULL: the working directory). Follows a link
 * in the last name. 0 or -errno: -ELOOP for an untrusted link, -EISDIR if the path can only name a
 * directory. */
int file_place__open(struct file_place *p, const struct file_folder *from, const char *path);
/* May be called twice. */
void file_place__done(struct file_place *p);

#endif /* GP_BASE_PLACE_H */
