/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Files whole. The temporary file lies in the directory of the final one, so that rename() is
 * atomic. A path that is no regular file (/dev/stdout, a pipe) is written directly.
 */
#include "base/file.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

int file_read(const char *path, size_t max_bytes, char **ret_text, size_t *ret_bytes)
{
	CLEANUP(cleanup_fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
	CLEANUP(cleanup_free) char *text = NULL;
	size_t nr = 0, cap = 0;

	if (fd < 0)
		return -errno;
	for (;;) {
		ssize_t got;

		if (cap - nr < 2) {
			char *grown = realloc(text, cap = cap ? 2 * cap : 4096);

			if (!grown)
				return -ENOMEM;
			text = grown;
		}
		got = read(fd, text + nr, cap - nr - 1);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (!got)
			break;
		nr += (size_t)got;
		if (nr > max_bytes)
			return -EFBIG;
	}
	text[nr] = '\0';
	*ret_text = TAKE(text);
	if (ret_bytes)
		*ret_bytes = nr;
	return 0;
}

int file_write_all(int fd, const void *data, size_t bytes)
{
	const char *p = data;

	while (bytes) {
		ssize_t n = write(fd, p, bytes);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		p += n;
		bytes -= (size_t)n;
	}
	return 0;
}

/* A user or group id from the environment; false if there is none. */
static bool id_from_environment(const char *name, unsigned int *ret_id)
{
	const char *text = getenv(name);
	unsigned long id;
	char *end;

	if (!text || *text < '0' || *text > '9')
		return false;
	errno = 0;
	id = strtoul(text, &end, 10);
	/* The largest id means "leave as it is" to the kernel. */
	if (errno || *end || id >= UINT32_MAX)
		return false;
	*ret_id = (unsigned int)id;
	return true;
}

/* Under sudo: makes the open file belong to the user who called it (SUDO_UID, SUDO_GID), so that
 * what gpuprof writes can be read without root. For files made by this process only. */
static void give_to_caller(int fd)
{
	unsigned int uid, gid;
	int ignored;

	if (geteuid() || !id_from_environment("SUDO_UID", &uid) ||
	    !id_from_environment("SUDO_GID", &gid))
		return;
	/* File systems without owners refuse: then the file stays root's. */
	ignored = fchown(fd, uid, gid);
	(void)ignored;
}

int file_create(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

	if (fd >= 0) {
		give_to_caller(fd);
		return fd;
	}
	if (errno != EEXIST)
		return -errno;
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	return fd < 0 ? -errno : fd;
}

/* Temporary files there are now. A signal handler reads it; those that find no place it misses. */
static char *volatile unfinished[8];

static void remember_temporary(char *path)
{
	for (size_t i = 0; i < sizeof(unfinished) / sizeof(unfinished[0]); i++)
		if (!unfinished[i]) {
			unfinished[i] = path;
			return;
		}
}

static void forget_temporary(struct file_new *f)
{
	for (size_t i = 0; i < sizeof(unfinished) / sizeof(unfinished[0]); i++)
		if (f->temporary && unfinished[i] == f->temporary)
			unfinished[i] = NULL;
	free(TAKE(f->temporary));
}

void file_new__abandon_all(void)
{
	for (size_t i = 0; i < sizeof(unfinished) / sizeof(unfinished[0]); i++)
		if (unfinished[i])
			(void)unlink(unfinished[i]);
}

static int open_temporary(struct file_new *f)
{
	mode_t mask = umask(0);

	(void)umask(mask);
	if (asprintf(&f->temporary, "%s.XXXXXX", f->path) < 0) {
		f->temporary = NULL;
		return -ENOMEM;
	}
	f->fd = mkostemp(f->temporary, O_CLOEXEC);
	if (f->fd < 0) {
		int err = -errno;

		free(TAKE(f->temporary));
		return err;
	}
	remember_temporary(f->temporary);
	(void)fchmod(f->fd, 0666 & ~mask);
	give_to_caller(f->fd);
	return 0;
}

#define LINKS_MAX 16

/* The number of a descriptor of ours that the path names; -1: it is no such name. */
static int descriptor_of(const char *path)
{
	static const char *const folders[] = {"/proc/self/fd/", "/dev/fd/"};

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		size_t bytes = strlen(folders[i]), digits;

		if (strncmp(path, folders[i], bytes) != 0)
			continue;
		digits = strspn(path + bytes, "0123456789");
		if (digits && digits < 8 && !path[bytes + digits])
			return atoi(path + bytes);
	}
	return -1;
}

/* *path becomes what the link that it is leads to. 1, 0: it is none, or -errno. */
static int follow_link(char **path)
{
	char text[PATH_MAX], *next;
	int dir_bytes = (int)(file_base_name(*path) - *path);
	ssize_t nr = descriptor_of(*path) < 0 ? readlink(*path, text, sizeof(text) - 1) : -1;
	struct stat st;

	if (nr < 0)
		return 0;
	text[nr] = '\0';
	/* The kernel may forbid to follow this one, planted by another user in a common folder. */
	if (stat(*path, &st) && errno != ENOENT)
		return -errno;
	if (asprintf(&next, "%.*s%s", text[0] == '/' ? 0 : dir_bytes, *path, text) < 0)
		return -ENOMEM;
	free(*path);
	*path = next;
	return 1;
}

static int follow_links(char **path)
{
	for (int i = 0; i < LINKS_MAX; i++) {
		int err = follow_link(path);

		if (err <= 0)
			return err;
	}
	return -ELOOP;
}

static int open_directly(struct file_new *f, int own)
{
	f->fd = own < 0 ? open(f->path, O_WRONLY | O_CLOEXEC) : fcntl(own, F_DUPFD_CLOEXEC, 0);
	return f->fd < 0 ? -errno : 0;
}

int file_new__open(struct file_new *f, const char *path)
{
	struct stat st;
	int err, own;

	*f = (struct file_new){.fd = -1, .path = strdup(path)};
	if (!f->path)
		return -ENOMEM;
	err = follow_links(&f->path);
	own = descriptor_of(f->path);
	if (!err && (own >= 0 || (!stat(f->path, &st) && !S_ISREG(st.st_mode))))
		err = open_directly(f, own);
	else if (!err)
		err = open_temporary(f);
	if (err)
		file_new__done(f);
	return err;
}

int file_new__commit(struct file_new *f)
{
	int err = 0;

	if (close(take_fd(&f->fd)))
		err = -errno;
	if (!err && f->temporary && rename(f->temporary, f->path))
		err = -errno;
	if (!err)
		forget_temporary(f);
	file_new__done(f);
	return err;
}

void file_new__done(struct file_new *f)
{
	if (f->fd >= 0)
		(void)close(take_fd(&f->fd));
	if (f->temporary)
		(void)unlink(f->temporary);
	forget_temporary(f);
	free(TAKE(f->path));
	f->fd = -1;
}

const char *file_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool is_same_there(const char *a, const char *b)
{
	struct stat sa, sb;

	return !stat(a, &sa) && !stat(b, &sb) && sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
}

/* The directory of a path, with the last slash. NULL: out of memory. */
static char *dir_of(const char *path)
{
	size_t bytes = (size_t)(file_base_name(path) - path);

	return bytes ? strndup(path, bytes) : strdup("./");
}

bool file_is_same(const char *a, const char *b)
{
	CLEANUP(cleanup_free) char *dir_a = dir_of(a);
	CLEANUP(cleanup_free) char *dir_b = dir_of(b);

	return is_same_there(a, b) || (!strcmp(file_base_name(a), file_base_name(b)) && dir_a &&
				       dir_b && is_same_there(dir_a, dir_b));
}
