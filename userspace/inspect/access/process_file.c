/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Resolves paths with openat2(2) and RESOLVE_IN_ROOT. Where that system call is missing (Linux
 * before 5.6) or filtered, it walks the path component by component and stops at a symbolic link:
 * the kernel's own names of mapped files have none.
 */
#include "inspect/access/process_file.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "inspect/access/status.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include "base/banned.h"

#define NAMES_MAX	 65536 /* of one directory */
#define STATUS_BYTES_MAX 65536
#define MOUNTS_BYTES_MAX (16u << 20)
#define MEMFD_PREFIX	 "memfd:"
#define DELETED_SUFFIX	 " (deleted)"

/* ---- paths ---- */

/* Returns the next component of *rest and moves on behind it. NULL at the end or if it is too long.
 */
static const char *next_component(const char **rest, char name[NAME_MAX + 1])
{
	size_t bytes;

	*rest += strspn(*rest, "/");
	bytes = strcspn(*rest, "/");
	if (!bytes || bytes > NAME_MAX)
		return NULL;
	memcpy(name, *rest, bytes);
	name[bytes] = '\0';
	*rest += bytes;
	return name;
}

/* Walks without openat2(): no ".." and no links. A handle or -errno. */
static int walk_in_root(int root, const char *path)
{
	char name[NAME_MAX + 1];
	CLEANUP(cleanup_fd) int at = fcntl(root, F_DUPFD_CLOEXEC, 0);

	if (at < 0)
		return -errno;
	while (next_component(&path, name)) {
		struct stat st;
		int next = strcmp(name, "..") ? openat(at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC)
					      : (errno = ELOOP, -1);

		if (next < 0)
			return -errno;
		(void)close(at);
		at = next;
		if (fstat(at, &st))
			return -errno;
		if (S_ISLNK(st.st_mode))
			return -ELOOP;
	}
	return *path ? -ENAMETOOLONG : take_fd(&at);
}

static int handle_in_root(pid_t pid, const char *path)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC,
			       .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	char link[64];
	long fd;

	(void)snprintf(link, sizeof(link), "/proc/%d/root", pid);
	CLEANUP(cleanup_fd) int root = open(link, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (root < 0)
		return -errno;
	fd = syscall(SYS_openat2, root, path, &how, sizeof(how));
	if (fd < 0 && (errno == ENOSYS || errno == EPERM))
		return walk_in_root(root, path);
	return fd < 0 ? -errno : (int)fd;
}

/* Whether `path` begins with "/proc/PID/root"; *ret_rest is then what follows, with the slash. */
static bool is_below_root(const char *path, pid_t *ret_pid, const char **ret_rest)
{
	static const char proc[] = "/proc/", root[] = "/root";
	const size_t proc_bytes = sizeof(proc) - 1, root_bytes = sizeof(root) - 1;
	char *end;
	long pid;

	if (strncmp(path, proc, proc_bytes) || !isdigit((unsigned char)path[proc_bytes]))
		return false;
	pid = strtol(path + proc_bytes, &end, 10);
	if (pid <= 0 || pid > INT_MAX || strncmp(end, root, root_bytes) || end[root_bytes] != '/')
		return false;
	*ret_pid = (pid_t)pid;
	*ret_rest = end + root_bytes;
	return true;
}

static int handle_of(const char *path)
{
	const char *rest;
	pid_t pid;
	int fd;

	if (is_below_root(path, &pid, &rest))
		return handle_in_root(pid, rest);
	fd = open(path, O_PATH | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* ---- regular files ---- */

void process_file_handle_path(int fd, char ret_path[PROCESS_FILE_PATH_MAX])
{
	(void)snprintf(ret_path, PROCESS_FILE_PATH_MAX, "/proc/self/fd/%d", fd);
}

/* Takes ownership of the handle. Returns it, or -errno. */
static int checked_handle(int handle, struct stat *ret_st)
{
	CLEANUP(cleanup_fd) int at = handle;
	struct stat st;

	if (at < 0)
		return at;
	if (fstat(at, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ENOEXEC;
	if (ret_st)
		*ret_st = st;
	return take_fd(&at);
}

/* Opens the file of a checked handle. A plain open() would wait for the holder of a lease. */
static int reopen(int handle, int flags)
{
	char path[PROCESS_FILE_PATH_MAX];
	int fd;

	process_file_handle_path(handle, path);
	fd = open(path, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int open_handle(int handle, struct stat *ret_st)
{
	CLEANUP(cleanup_fd) int at = checked_handle(handle, ret_st);

	return at < 0 ? at : reopen(at, O_RDONLY);
}

int process_file_handle(const char *path, struct stat *ret_st)
{
	return checked_handle(handle_of(path), ret_st);
}

int process_file_open(const char *path, struct stat *ret_st)
{
	return open_handle(handle_of(path), ret_st);
}

int process_file_stat(const char *path, struct stat *ret_st)
{
	CLEANUP(cleanup_fd) int at = process_file_handle(path, ret_st);

	return at < 0 ? at : 0;
}

int process_file_read(pid_t pid, const char *path, size_t max_bytes, char **ret_text)
{
	struct stat st;
	CLEANUP(cleanup_fd) int fd = open_handle(handle_in_root(pid, path), &st);
	CLEANUP(cleanup_free) char *text = NULL;
	size_t bytes;
	ssize_t nr;

	if (fd < 0)
		return fd;
	bytes = (size_t)st.st_size < max_bytes ? (size_t)st.st_size : max_bytes;
	text = malloc(bytes + 1);
	if (!text)
		return -ENOMEM;
	nr = file_read_all(fd, text, bytes);
	if (nr < 0)
		return (int)nr;
	text[nr] = '\0';
	*ret_text = TAKE(text);
	return 0;
}

int process_folder_each_name(pid_t pid, const char *path, int (*fn)(const char *name, void *arg),
			     void *arg)
{
	CLEANUP(cleanup_fd) int at = handle_in_root(pid, path);
	CLEANUP(cleanup_dir) DIR *d = NULL;
	struct dirent *entry;
	size_t nr = 0;
	int err = 0, fd;

	if (at < 0)
		return at;
	fd = openat(at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	d = fdopendir(fd);
	if (!d) {
		err = -errno;
		(void)close(fd);
		return err;
	}
	while (!err && nr++ < NAMES_MAX && (entry = readdir(d)))
		err = fn(entry->d_name, arg);
	return err;
}

/* ---- memory files ---- */

/* Memory files are in a file system that belongs to the kernel and cannot be mounted. */
static int memfd_device(dev_t *ret_device)
{
	CLEANUP(cleanup_fd) int fd = memfd_create("gpuprof-device", MFD_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return -errno;
	*ret_device = st.st_dev;
	return 0;
}

/* Whether `uid` is one of the thread's four user ids. */
static bool is_users_own(pid_t tid, uid_t uid)
{
	CLEANUP(cleanup_free) char *text = NULL;
	long id;

	if (status_read(tid, 0, &text))
		return false;
	for (int i = 0; i < 4; i++)
		if (status_number(text, "Uid", i, &id) && (uid_t)id == uid)
			return true;
	return false;
}

/* Returns the last component of the name that the handle's file had before it was unlinked. */
static int lost_name(int handle, char *ret_name, size_t room)
{
	const size_t after = sizeof(DELETED_SUFFIX) - 1;
	char path[PROCESS_FILE_PATH_MAX], text[PATH_MAX];
	const char *last;
	ssize_t nr;

	process_file_handle_path(handle, path);
	nr = readlink(path, text, sizeof(text) - 1);
	if (nr < 0)
		return -errno;
	text[nr] = '\0';
	if ((size_t)nr <= after || strcmp(text + nr - after, DELETED_SUFFIX))
		return -EPROTO;
	text[nr - (ssize_t)after] = '\0';
	last = strrchr(text, '/');
	if (!last || strlen(last + 1) >= room)
		return -EPROTO;
	memcpy(ret_name, last + 1, strlen(last));
	return 0;
}

static int check_memfd(int handle, pid_t tid, struct stat *ret_st)
{
	struct statfs fs;
	dev_t device = 0;
	int err;

	if (fstat(handle, ret_st) || fstatfs(handle, &fs))
		return -errno;
	err = memfd_device(&device);
	if (err)
		return err;
	if (!S_ISREG(ret_st->st_mode) || ret_st->st_nlink || fs.f_type != TMPFS_MAGIC ||
	    ret_st->st_dev != device || !is_users_own(tid, ret_st->st_uid))
		return -EPROTO;
	return 0;
}

/* Returns the number after `name` at the start of a line of a /proc file; -1: none. */
static long number_behind(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	return at ? strtol(at + strlen(name), NULL, 10) : -1;
}

/* Whether the handle's file is in a tmpfs that the thread sees. Does not ask the file system, which
 * may never answer. */
static bool is_in_tmpfs(int handle, pid_t tid)
{
	CLEANUP(cleanup_free) char *info = NULL, *mounts = NULL;
	char path[64], *rest, *line;
	long mount;

	(void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", handle);
	if (file_read(path, STATUS_BYTES_MAX, &info, NULL))
		return false;
	mount = number_behind(info, "mnt_id:");
	(void)snprintf(path, sizeof(path), "/proc/%d/mountinfo", tid);
	if (mount < 0 || file_read(path, MOUNTS_BYTES_MAX, &mounts, NULL))
		return false;
	for (rest = mounts; (line = strsep(&rest, "\n"));)
		if (*line && strtol(line, NULL, 10) == mount)
			return strstr(line, " - tmpfs ");
	return false;
}

static int check_nameless(int handle, pid_t tid, enum process_made most, struct stat *ret_st)
{
	if (most == PROCESS_MADE_IN_MEMORY ||
	    (most == PROCESS_MADE_IN_TMPFS && !is_in_tmpfs(handle, tid)))
		return -EPROTO;
	if (fstat(handle, ret_st))
		return -errno;
	if (!S_ISREG(ret_st->st_mode) || ret_st->st_nlink || !is_users_own(tid, ret_st->st_uid))
		return -EPROTO;
	return 0;
}

int process_made_file_open(pid_t tid, const char *number, enum process_made most,
			   bool (*fits)(const char *name, const void *arg), const void *arg,
			   struct stat *ret_st, enum process_made *ret_made)
{
	char path[64], name[NAME_MAX + 1];
	const char *own = name;
	bool memory;
	int err;

	(void)snprintf(path, sizeof(path), "/proc/%d/fd/%.10s", tid, number);
	CLEANUP(cleanup_fd) int handle = open(path, O_PATH | O_CLOEXEC);

	if (handle < 0)
		return -errno;
	err = lost_name(handle, name, sizeof(name));
	if (err)
		return err;
	memory = !strncmp(name, MEMFD_PREFIX, sizeof(MEMFD_PREFIX) - 1);
	if (memory)
		own += sizeof(MEMFD_PREFIX) - 1;
	if (!fits(own, arg))
		return -EPROTO;
	err = memory ? check_memfd(handle, tid, ret_st) : check_nameless(handle, tid, most, ret_st);
	*ret_made = memory ? PROCESS_MADE_IN_MEMORY : most;
	return err ? err : reopen(handle, O_RDWR);
}
