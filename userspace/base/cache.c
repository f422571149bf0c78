/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Walks the path name by name, opens each component without following it and checks its handle.
 * Files are opened, created and renamed relative to the folder's handle, so nothing can change
 * between the check and the use.
 */
#include "base/cache.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/vec.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define LINKS_MAX     16
#define OTHERS_WRITE  (S_IWGRP | S_IWOTH)
#define FILES_MAX     65536
#define BLOCK_BYTES   4096 /* what a small file takes */
#define TEMPORARY_END ".new"

/* ---- the folder ---- */

/* Root may change anything anyway. */
static bool is_trusted(uid_t owner)
{
	return !owner || owner == geteuid();
}

/* Whether nobody else can rename or replace our and root's files in the folder. */
static bool keeps_names(const struct stat *st)
{
	return S_ISDIR(st->st_mode) && is_trusted(st->st_uid) &&
	       (!(st->st_mode & OTHERS_WRITE) || st->st_mode & S_ISVTX);
}

struct walk {
	int at; /* the folder reached */
	char left[PATH_MAX];
	int links_nr;
};

/* Puts the link's target in front of the rest of the path. */
static int follow_link(struct walk *w, int link)
{
	char text[PATH_MAX], left[PATH_MAX];
	ssize_t nr = readlinkat(link, "", text, sizeof(text) - 1);

	if (nr <= 0)
		return nr ? -errno : -ENOENT;
	text[nr] = '\0';
	if (++w->links_nr > LINKS_MAX)
		return -ELOOP;
	if (snprintf(left, sizeof(left), "%s/%s", text, w->left) >= (int)sizeof(left))
		return -ENAMETOOLONG;
	memcpy(w->left, left, sizeof(left));
	return 0;
}

/* Enters the name in the folder that was reached. */
static int enter(struct walk *w, const char *name)
{
	CLEANUP(cleanup_fd) int next = openat(w->at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (next < 0 || fstat(next, &st))
		return -errno;
	if (!is_trusted(st.st_uid))
		return -EPERM;
	if (S_ISLNK(st.st_mode))
		return follow_link(w, next);
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	if (!keeps_names(&st))
		return -EPERM;
	(void)close(w->at);
	w->at = take_fd(&next);
	return 0;
}

static int restart_at_root(struct walk *w)
{
	CLEANUP(cleanup_fd) int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	if (root < 0 || fstat(root, &st))
		return -errno;
	if (!keeps_names(&st))
		return -EPERM;
	if (w->at >= 0)
		(void)close(w->at);
	w->at = take_fd(&root);
	return 0;
}

/* Takes the next name of the rest; a leading slash means the root directory. */
static int step(struct walk *w)
{
	char name[NAME_MAX + 1];
	size_t nr = strcspn(w->left, "/"), more = nr + strspn(w->left + nr, "/");

	if (nr > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(name, w->left, nr);
	name[nr] = '\0';
	memmove(w->left, w->left + more, strlen(w->left + more) + 1);
	return nr ? enter(w, name) : restart_at_root(w);
}

static int begin(struct walk *w, const char *folder)
{
	char here[PATH_MAX] = "";

	*w = (struct walk){.at = -1};
	if (folder[0] != '/' && !getcwd(here, sizeof(here)))
		return -errno;
	return snprintf(w->left, sizeof(w->left), "%s/%s", here, folder) < (int)sizeof(w->left)
		       ? 0
		       : -ENAMETOOLONG;
}

/* Opens a handle (O_PATH) to the folder. A descriptor or -errno. */
static int open_folder(const char *folder)
{
	struct walk w;
	struct stat st;
	int err = begin(&w, folder);

	while (!err && w.left[0])
		err = step(&w);
	if (!err && fstat(w.at, &st))
		err = -errno;
	else if (!err && (st.st_uid != geteuid() || st.st_mode & OTHERS_WRITE))
		err = -EPERM;
	if (!err)
		return w.at;
	if (w.at >= 0)
		(void)close(w.at);
	return err;
}

int cache_check(const char *folder, struct reason *why)
{
	CLEANUP(cleanup_fd) int fd = open_folder(folder);

	if (fd == -EPERM)
		return reason_set(why, fd,
				  "'%s' is not a folder that only you may write to, and whose path "
				  "nobody else can change",
				  folder);
	return fd < 0 ? reason_set(why, fd, "cannot use '%s': %s", folder, strerror(-fd)) : 0;
}

/* ---- files ---- */

static bool is_ours(const struct stat *st)
{
	return S_ISREG(st->st_mode) && st->st_uid == geteuid() && !(st->st_mode & OTHERS_WRITE);
}

/* Refuses links; opening a FIFO or a device neither blocks nor has an effect. */
static int open_ours(int folder, const char *name, struct stat *ret_st)
{
	CLEANUP(cleanup_fd)
	int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd < 0 || fstat(fd, ret_st))
		return -errno;
	return is_ours(ret_st) ? take_fd(&fd) : -EPERM;
}

int cache_read(const char *folder, const char *name, size_t max_bytes, char **ret_data,
	       size_t *ret_bytes)
{
	CLEANUP(cleanup_fd) int dir = open_folder(folder);
	CLEANUP(cleanup_free) char *data = NULL;
	struct stat st;
	ssize_t nr;

	if (dir < 0)
		return dir;
	CLEANUP(cleanup_fd) int fd = open_ours(dir, name, &st);

	if (fd < 0)
		return fd;
	if ((uint64_t)st.st_size > max_bytes)
		return -EFBIG;
	data = malloc((size_t)st.st_size + 1);
	if (!data)
		return -ENOMEM;
	nr = file_read_all(fd, data, (size_t)st.st_size);
	if (nr != st.st_size)
		return nr < 0 ? (int)nr : -EIO;
	data[nr] = '\0';
	*ret_data = TAKE(data);
	*ret_bytes = (size_t)nr;
	return 0;
}

/* Writes the parts to a new file. A file with that name was left by a killed process with our pid.
 */
static int write_new(int dir, const char *temporary, mode_t mode, const struct cache_part *parts,
		     size_t nr)
{
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	CLEANUP(cleanup_fd) int fd = openat(dir, temporary, flags, mode & 0700);
	int err = 0;

	if (fd < 0 && errno == EEXIST && !unlinkat(dir, temporary, 0))
		fd = openat(dir, temporary, flags, mode & 0700);
	if (fd < 0 || fchmod(fd, mode))
		return -errno;
	for (size_t i = 0; i < nr && !err; i++)
		err = file_write_all(fd, parts[i].data, parts[i].bytes);
	if (close(take_fd(&fd)) && !err)
		err = -errno;
	return err;
}

int cache_write(const char *folder, const char *name, mode_t mode, const struct cache_part *parts,
		size_t nr)
{
	static _Atomic unsigned int counter;
	CLEANUP(cleanup_fd) int dir = open_folder(folder);
	char temporary[NAME_MAX + 1];
	int err;

	if (dir < 0)
		return dir;
	if (snprintf(temporary, sizeof(temporary), "%s.%d-%u" TEMPORARY_END, name, (int)getpid(),
		     counter++) >= (int)sizeof(temporary))
		return -ENAMETOOLONG;
	err = write_new(dir, temporary, mode, parts, nr);
	if (!err && renameat(dir, temporary, dir, name))
		err = -errno;
	if (err)
		(void)unlinkat(dir, temporary, 0);
	return err;
}

/* ---- its size ---- */

struct kept {
	char name[NAME_MAX + 1];
	off_t bytes;
	struct timespec written;
};

struct kept_files {
	VEC(struct kept) items;
	off_t bytes;
};

static void cleanup_kept(struct kept_files *k)
{
	vec_done(&k->items);
}

static bool ends_in(const char *name, const char *suffix)
{
	size_t nr = strlen(name), end = strlen(suffix);

	return nr > end && !strcmp(name + nr - end, suffix);
}

static bool is_one_of(const char *name, const char *const *suffixes, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (ends_in(name, suffixes[i]))
			return true;
	return ends_in(name, TEMPORARY_END);
}

static int compare_written(const void *a, const void *b)
{
	const struct timespec *x = &((const struct kept *)a)->written;
	const struct timespec *y = &((const struct kept *)b)->written;

	if (x->tv_sec != y->tv_sec)
		return x->tv_sec < y->tv_sec ? -1 : 1;
	return x->tv_nsec < y->tv_nsec ? -1 : x->tv_nsec > y->tv_nsec;
}

static void find_kept(DIR *d, const char *const *suffixes, size_t nr, struct kept_files *k)
{
	struct dirent *entry;

	while (k->items.nr < FILES_MAX && (entry = readdir(d))) {
		struct kept one = {0};
		struct stat st;

		if (!is_one_of(entry->d_name, suffixes, nr) ||
		    fstatat(dirfd(d), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
		    S_ISDIR(st.st_mode))
			continue;
		(void)snprintf(one.name, sizeof(one.name), "%s", entry->d_name);
		one.bytes = (st.st_size / BLOCK_BYTES + 1) * BLOCK_BYTES;
		one.written = st.st_mtim;
		if (vec_push(&k->items, one))
			return;
		k->bytes += one.bytes;
	}
}

void cache_shrink(const char *folder, const char *const *suffixes, size_t nr, off_t max_bytes)
{
	CLEANUP(cleanup_fd) int dir = open_folder(folder);
	CLEANUP(cleanup_kept) struct kept_files k = {0};
	CLEANUP(cleanup_dir) DIR *d = NULL;
	int fd = dir < 0 ? -1 : openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	d = fd < 0 ? NULL : fdopendir(fd);
	if (!d) {
		cleanup_fd(&fd);
		return;
	}
	find_kept(d, suffixes, nr, &k);
	if (k.bytes > max_bytes)
		qsort(k.items.items, k.items.nr, sizeof(*k.items.items), compare_written);
	for (size_t i = 0; i < k.items.nr && k.bytes > max_bytes; i++)
		if (!unlinkat(dir, k.items.items[i].name, 0))
			k.bytes -= k.items.items[i].bytes;
}
