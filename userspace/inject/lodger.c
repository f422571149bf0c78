/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A descriptor number of the target means nothing by itself: the target may have closed ours and
 * opened its own. So it is always compared with the file's device and inode, or with its name.
 */
#include "inject/lodger.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/hash.h"

#define PREFIX "memfd:"

void lodger_name(const char *name, const void *image, size_t bytes, char ret_name[LODGER_NAME_MAX])
{
	(void)snprintf(ret_name, LODGER_NAME_MAX, "%.24s-%016llx", name,
		       (unsigned long long)hash_bytes(image, bytes));
}

/* Whether "memfd:NAME-HASH" is the name, or begins with it if it ends in '-'. */
static bool name_fits(const char *found, const char *name)
{
	size_t bytes = strlen(name);

	if (strncmp(found, PREFIX, strlen(PREFIX)))
		return false;
	found += strlen(PREFIX);
	if (strncmp(found, name, bytes))
		return false;
	return name[bytes - 1] == '-' || !found[bytes] || found[bytes] == ' ';
}

static void find_mappings(const struct memory_map *map, const char *name, struct lodger *l)
{
	for (size_t i = 0; i < map->maps.nr; i++) {
		const struct mapping *m = &map->maps.items[i];

		if (!l->loaded && name_fits(m->name, name)) {
			l->loaded = true;
			l->start = m->start;
			l->device = m->device;
			l->inode = m->inode;
			(void)snprintf(l->name, sizeof(l->name), "%s", m->name + strlen(PREFIX));
		}
		if (l->loaded && m->inode == l->inode && m->device == l->device)
			l->end = m->end;
	}
}

/* Whether the target's descriptor is the file that is mapped or, if none is, one of that name. */
static bool descriptor_fits(int dir, const char *number, const char *name, const struct lodger *l)
{
	char text[128];
	struct stat st;
	ssize_t n;

	if (l->loaded)
		return !fstatat(dir, number, &st, 0) && st.st_ino == l->inode &&
		       st.st_dev == l->device;
	n = readlinkat(dir, number, text, sizeof(text) - 1);
	if (n <= 0)
		return false;
	text[n] = '\0';
	return text[0] == '/' && name_fits(text + 1, name);
}

int lodger_find(pid_t pid, const struct memory_map *map, const char *name,
		struct lodger *ret_lodger)
{
	DIR CLEANUP(cleanup_dir) *d = NULL;
	struct lodger l = {.fd = -1};
	const struct dirent *e;
	char path[32];

	find_mappings(map, name, &l);
	(void)snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	d = opendir(path);
	while (d && l.fd < 0 && (e = readdir(d)))
		if (e->d_name[0] >= '0' && e->d_name[0] <= '9' &&
		    descriptor_fits(dirfd(d), e->d_name, name, &l))
			l.fd = atoi(e->d_name);
	*ret_lodger = l;
	return d ? 0 : -EACCES;
}

/* 1 if the file holds exactly the image, 0 if not, or -errno. */
static int holds(int fd, const void *image, size_t bytes)
{
	struct stat st;
	void *mapped;
	int same;

	if (fstat(fd, &st))
		return -errno;
	if ((uint64_t)st.st_size != bytes)
		return 0;
	mapped = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
	if (mapped == MAP_FAILED)
		return -errno;
	same = !memcmp(mapped, image, bytes);
	(void)munmap(mapped, bytes);
	return same;
}

int lodger_fill(pid_t pid, int fd, const char *name, const void *image, size_t bytes)
{
	int CLEANUP(cleanup_fd) file = -1;
	char path[48], text[128];
	ssize_t n;
	int err;

	(void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
	n = readlink(path, text, sizeof(text) - 1);
	if (n <= 0)
		return n ? -errno : -ENOENT;
	text[n] = '\0';
	if (text[0] != '/' || !name_fits(text + 1, name))
		return -EBADF;
	file = open(path, O_RDWR | O_CLOEXEC);
	if (file < 0)
		return -errno;
	if (fcntl(file, F_GET_SEALS) < 0)
		return -errno;
	err = fcntl(file, F_GET_SEALS) & F_SEAL_WRITE ? holds(file, image, bytes) : 0;
	if (err)
		return err < 0 ? err : 0;
	if (ftruncate(file, 0))
		return -errno == -EPERM ? -EEXIST : -errno;
	err = file_write_all(file, image, bytes);
	if (!err && fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE))
		err = -errno;
	return err;
}
