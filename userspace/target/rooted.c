/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Files as a process sees them. openat2() with RESOLVE_IN_ROOT, which every kernel with a BPF ring
 * buffer has.
 */
#include "target/rooted.h"

#include "base/cleanup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define NAMES_MAX 65536 /* of one directory */

int regular_open(int at, uint64_t *ret_bytes)
{
	char again[64];
	struct stat st;
	int fd;

	if (fstat(at, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ENOEXEC;
	(void)snprintf(again, sizeof(again), "/proc/self/fd/%d", at);
	fd = open(again, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return -errno;
	*ret_bytes = (uint64_t)st.st_size;
	return fd;
}

static int open_in_root(pid_t pid, const char *path, uint64_t flags)
{
	struct open_how how = {.flags = flags | O_CLOEXEC,
			       .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	char link[64];
	long fd;

	(void)snprintf(link, sizeof(link), "/proc/%d/root", pid);
	CLEANUP(cleanup_fd) int root = open(link, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (root < 0)
		return -errno;
	fd = syscall(SYS_openat2, root, path, &how, sizeof(how));
	return fd < 0 ? -errno : (int)fd;
}

int rooted_read(pid_t pid, const char *path, size_t max_bytes, char **ret_text)
{
	CLEANUP(cleanup_fd) int at = open_in_root(pid, path, O_PATH);
	CLEANUP(cleanup_free) char *text = NULL;
	uint64_t bytes = 0;
	size_t nr = 0;

	if (at < 0)
		return at;
	CLEANUP(cleanup_fd) int fd = regular_open(at, &bytes);

	if (fd < 0)
		return fd;
	if (bytes > max_bytes)
		bytes = max_bytes;
	text = malloc(bytes + 1);
	if (!text)
		return -ENOMEM;
	while (nr < bytes) {
		ssize_t got = read(fd, text + nr, bytes - nr);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (!got)
			break;
		nr += (size_t)got;
	}
	text[nr] = '\0';
	*ret_text = TAKE(text);
	return 0;
}

int rooted_each_name(pid_t pid, const char *path, int (*fn)(const char *name, void *arg), void *arg)
{
	CLEANUP(cleanup_fd) int fd = open_in_root(pid, path, O_RDONLY | O_DIRECTORY);
	CLEANUP(cleanup_dir) DIR *d = NULL;
	struct dirent *entry;
	size_t nr = 0;
	int err = 0;

	if (fd < 0)
		return fd;
	d = fdopendir(fd);
	if (!d)
		return -errno;
	(void)take_fd(&fd);
	while (!err && nr++ < NAMES_MAX && (entry = readdir(d)))
		err = fn(entry->d_name, arg);
	return err;
}
