/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Finds the library's file in the process. A descriptor number alone proves nothing: the process
 * may have closed our file and opened its own. So the file's device and inode, or its name, are
 * always compared.
 */
#include "inject/injected_library.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/hash.h"
#include "inspect/access/process_file.h"

#define PREFIX "memfd:"

void injected_library_name(const char *name, const void *image, size_t bytes,
			   char ret_name[INJECTED_NAME_MAX])
{
	(void)snprintf(ret_name, INJECTED_NAME_MAX, "%.24s-%016llx", name,
		       (unsigned long long)hash_bytes(image, bytes));
}

/* Whether a file's name is `name` ("NAME-HASH"), or begins with it if it ends in '-'. */
static bool name_fits(const char *found, const char *name)
{
	size_t bytes = strlen(name);

	if (strncmp(found, name, bytes))
		return false;
	return name[bytes - 1] == '-' || !found[bytes] || found[bytes] == ' ';
}

/* Returns the name in the last path component that /proc gives, "memfd:NAME-HASH" or, for a file in
 * a folder, "NAME-HASH", perhaps with " (deleted)"; NULL if it does not match. */
static const char *fitting_name(const char *last, const char *name)
{
	if (!strncmp(last, PREFIX, strlen(PREFIX)))
		last += strlen(PREFIX);
	return name_fits(last, name) ? last : NULL;
}

static void find_mappings(const struct memory_map *map, const char *name,
			  struct injected_library *l)
{
	for (size_t i = 0; i < map->maps.nr; i++) {
		const struct mapping *m = &map->maps.items[i];
		const char *found = l->loaded ? NULL : fitting_name(m->name, name);

		if (found) {
			l->loaded = true;
			l->start = m->start;
			l->device = m->device;
			l->inode = m->inode;
			(void)snprintf(l->name, sizeof(l->name), "%.*s", (int)strcspn(found, " "),
				       found);
		}
		if (l->loaded && m->inode == l->inode && m->device == l->device)
			l->end = m->end;
	}
}

/* Whether the process's descriptor is the mapped file or, if none is mapped, one with that name. */
static bool descriptor_fits(int dir, const char *number, const char *name,
			    const struct injected_library *l)
{
	char text[128];
	const char *last;
	struct stat st;
	ssize_t n;

	if (l->loaded)
		return !fstatat(dir, number, &st, 0) && st.st_ino == l->inode &&
		       st.st_dev == l->device;
	n = readlinkat(dir, number, text, sizeof(text) - 1);
	if (n <= 0)
		return false;
	text[n] = '\0';
	last = strrchr(text, '/');
	return last && fitting_name(last + 1, name);
}

int injected_library_find(pid_t pid, const struct memory_map *map, const char *name,
			  struct injected_library *ret_library)
{
	DIR CLEANUP(cleanup_dir) *d = NULL;
	struct injected_library l = {.fd = -1};
	const struct dirent *e;
	char path[32];

	find_mappings(map, name, &l);
	(void)snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	d = opendir(path);
	while (d && l.fd < 0 && (e = readdir(d)))
		if (e->d_name[0] >= '0' && e->d_name[0] <= '9' &&
		    descriptor_fits(dirfd(d), e->d_name, name, &l))
			l.fd = atoi(e->d_name);
	*ret_library = l;
	return d ? 0 : -EACCES;
}

/* Compares the file with the image: 1 equal, 0 not, or -errno. Reads it and never maps it: its
 * owner may truncate it meanwhile. */
static int holds(int fd, const unsigned char *image, size_t bytes)
{
	unsigned char block[16384];
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if ((uint64_t)st.st_size != bytes)
		return 0;
	for (size_t at = 0; at < bytes; at += sizeof(block)) {
		size_t most = bytes - at < sizeof(block) ? bytes - at : sizeof(block);
		ssize_t nr = file_read_all_at(fd, at, block, most);

		if (nr < 0)
			return (int)nr;
		if ((size_t)nr < most || memcmp(block, image + at, most))
			return 0;
	}
	return 1;
}

static bool is_named(const char *found, const void *name)
{
	return name_fits(found, name);
}

static int write_image(int file, const void *image, size_t bytes, bool seal)
{
	int err;

	if (ftruncate(file, 0))
		return errno == EPERM ? -EEXIST : -errno;
	err = file_write_all(file, image, bytes);
	if (!err && seal && fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE))
		err = -errno;
	return err;
}

int injected_library_fill(pid_t tid, int fd, const char *name, const void *image, size_t bytes)
{
	enum process_made made = PROCESS_MADE_IN_MEMORY;
	char number[16];
	struct stat st;
	int seals, same;

	(void)snprintf(number, sizeof(number), "%d", fd);
	CLEANUP(cleanup_fd)
	int file = process_made_file_open(tid, number, PROCESS_MADE_ANYWHERE, is_named, name, &st,
					  &made);

	if (file < 0)
		return file == -EPROTO ? -EBADF : file;
	if (made != PROCESS_MADE_IN_MEMORY)
		return write_image(file, image, bytes, false);
	seals = fcntl(file, F_GET_SEALS);
	if (seals < 0)
		return -errno;
	/* Seals were forbidden before it was sealed: it is not a file that we made. */
	if ((seals & F_SEAL_SEAL) && !(seals & F_SEAL_WRITE))
		return -EBADF;
	same = seals & F_SEAL_WRITE ? holds(file, image, bytes) : 0;
	if (same)
		return same < 0 ? same : 0;
	return write_image(file, image, bytes, true);
}
