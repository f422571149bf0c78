/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Walks paths with openat(O_PATH | O_NOFOLLOW). openat2() does not suffice: which links are trusted
 * depends on the owner of their folder, which no RESOLVE_ flag expresses.
 */
#include "base/place.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/banned.h"

#define LINKS_MAX 40 /* as the kernel */

/* ---- who may have put something there ---- */

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

struct file_owner file_owner_get(void)
{
	struct file_owner own = {geteuid(), getegid()}, caller;

	if (own.uid || !id_from_environment("SUDO_UID", &caller.uid) ||
	    !id_from_environment("SUDO_GID", &caller.gid))
		return own;
	return caller;
}

static bool is_ours(uid_t uid)
{
	return !uid || uid == file_owner_get().uid;
}

static bool is_safe(const struct stat *folder)
{
	return is_ours(folder->st_uid) && !(folder->st_mode & S_IWOTH) &&
	       (!(folder->st_mode & S_IWGRP) || !folder->st_gid);
}

/* Whether root or the caller put the file in the folder. In a sticky folder anybody may create
 * names, but only owners may remove them; a second name may be a stranger's hard link. */
static bool is_trusted(const struct stat *folder, const struct stat *st)
{
	if (geteuid() || is_safe(folder))
		return true;
	return is_ours(folder->st_uid) && (folder->st_mode & S_ISVTX) && is_ours(st->st_uid) &&
	       st->st_nlink == 1;
}

/* ---- walking ---- */

struct walk {
	int fd;
	struct stat st; /* of fd */
	int own;	/* as in struct file_place; ends the walk */
	char *rest, *at;
	unsigned int links_nr;
};

static void walk__done(struct walk *w)
{
	if (w->fd >= 0)
		(void)close(w->fd);
	free(w->rest);
}

static int enter(struct walk *w, int fd)
{
	if (fd < 0)
		return -errno;
	if (w->fd >= 0)
		(void)close(w->fd);
	w->fd = fd;
	return fstat(fd, &w->st) ? -errno : 0;
}

/* Returns the number of the open descriptor that the path names; -1: it names none. */
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

/* Continues with `text` and takes ownership of it. */
static int go_on_with(struct walk *w, char *text)
{
	free(w->rest);
	w->rest = w->at = text;
	w->own = descriptor_of(text);
	if (!*text)
		return -ENOENT;
	return *text == '/' ? enter(w, open("/", O_PATH | O_DIRECTORY | O_CLOEXEC)) : 0;
}

static int begin(struct walk *w, const struct file_folder *from, const char *path)
{
	char *text = strdup(path);
	int err;

	*w = (struct walk){.fd = -1, .own = -1};
	if (!text)
		return -ENOMEM;
	err = *path == '/' ? 0
	      : from	   ? enter(w, fcntl(from->fd, F_DUPFD_CLOEXEC, 0))
			   : enter(w, open(".", O_PATH | O_DIRECTORY | O_CLOEXEC));
	if (err) {
		free(text);
		return err;
	}
	return go_on_with(w, text);
}

/* Replaces the name by the target of the link `fd`. */
static int follow(struct walk *w, int fd, const struct stat *st)
{
	char text[PATH_MAX], *next;
	ssize_t nr;

	if (w->links_nr++ == LINKS_MAX || !is_trusted(&w->st, st))
		return -ELOOP;
	nr = readlinkat(fd, "", text, sizeof(text));
	if (nr < 0)
		return -errno;
	if (nr == sizeof(text))
		return -ENAMETOOLONG;
	if (asprintf(&next, "%.*s%s%s", (int)nr, text, *w->at ? "/" : "", w->at) < 0)
		return -ENOMEM;
	return go_on_with(w, next);
}

/* Takes the next name; NULL: there is none. *ret_folder: a slash follows it. */
static char *take_name(struct walk *w, bool *ret_folder)
{
	char *name = w->at + strspn(w->at, "/");
	char *end = strchrnul(name, '/');

	w->at = end + strspn(end, "/");
	*ret_folder = *end;
	*end = '\0';
	return *name ? name : NULL;
}

static bool is_dots(const char *name)
{
	return !strcmp(name, ".") || !strcmp(name, "..");
}

static int step(struct walk *w, const char *name)
{
	CLEANUP(cleanup_fd) int fd = openat(w->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return -errno;
	if (S_ISLNK(st.st_mode))
		return follow(w, fd, &st);
	return S_ISDIR(st.st_mode) ? enter(w, take_fd(&fd)) : -ENOTDIR;
}

/* Whether the walk ends at the last name of the path. 1: it does. */
static int check_last_name(struct walk *w, const char *name, struct file_place *p)
{
	p->exists = !fstatat(w->fd, name, &p->st, AT_SYMLINK_NOFOLLOW);
	if (!p->exists && errno != ENOENT)
		return -errno;
	if (p->exists && S_ISLNK(p->st.st_mode))
		return step(w, name);
	p->is_trusted = p->exists && is_trusted(&w->st, &p->st);
	p->name = strdup(name);
	return p->name ? 1 : -ENOMEM;
}

/* Walks to the end, or to the folder of the last name if there is a place to fill in. */
static int walk(struct walk *w, struct file_place *p)
{
	int err = 0;

	while (!err && w->own < 0) {
		bool folder;
		char *name = take_name(w, &folder);

		if (!name)
			return p ? -EISDIR : 0;
		if (!p || *w->at)
			err = step(w, name);
		else if (folder || is_dots(name))
			return -EISDIR;
		else
			err = check_last_name(w, name, p);
	}
	return err < 0 ? err : 0;
}

int file_place__open(struct file_place *p, const struct file_folder *from, const char *path)
{
	CLEANUP(walk__done) struct walk w;
	struct file_place found = {.folder = -1, .own = -1};
	int err = begin(&w, from, path);

	err = err ? err : walk(&w, &found);
	if (err) {
		free(found.name);
		return err;
	}
	found.own = w.own;
	if (w.own < 0)
		found.folder = take_fd(&w.fd);
	*p = found;
	return 0;
}

void file_place__done(struct file_place *p)
{
	if (p->folder >= 0)
		(void)close(take_fd(&p->folder));
	free(TAKE(p->name));
}

/* ---- folders ---- */

int file_folder__open(struct file_folder *f, const char *path)
{
	CLEANUP(walk__done) struct walk w;
	int err = begin(&w, NULL, path);

	f->fd = -1;
	err = err ? err : walk(&w, NULL);
	if (!err && w.own >= 0)
		err = -ENOTDIR;
	if (!err)
		f->fd = take_fd(&w.fd);
	return err;
}

int file_folder__open_of(struct file_folder *f, const char *path)
{
	const char *slash = strrchr(path, '/');
	CLEANUP(cleanup_free)
	char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");

	f->fd = -1;
	return folder ? file_folder__open(f, folder) : -ENOMEM;
}

/* File systems without owners refuse: then it stays root's. */
static void give_to_caller(int folder)
{
	struct file_owner owner = file_owner_get();
	int ignored = fchownat(folder, "", owner.uid, owner.gid, AT_EMPTY_PATH);

	(void)ignored;
}

int file_folder__make(struct file_folder *f, const char *path)
{
	CLEANUP(cleanup_free) char *text = strdup(path);
	CLEANUP(file_place__done) struct file_place p = {.folder = -1};
	struct stat st;
	int err;

	f->fd = -1;
	if (!text)
		return -ENOMEM;
	for (size_t nr = strlen(text); nr > 1 && text[nr - 1] == '/'; nr--)
		text[nr - 1] = '\0';
	err = file_place__open(&p, NULL, text);
	/* The root directory, "." and "..": they are there. */
	if (err == -EISDIR)
		return file_folder__open(f, text);
	if (err || p.own >= 0)
		return err ? err : -ENOTDIR;
	err = mkdirat(p.folder, p.name, 0700) ? -errno : 0;
	if (err && err != -EEXIST)
		return err;
	f->fd = openat(p.folder, p.name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (f->fd < 0)
		return -errno;
	if (!err && !fstat(f->fd, &st) && st.st_uid == geteuid())
		give_to_caller(f->fd);
	return 0;
}

bool file_folder__is_safe(const struct file_folder *f)
{
	struct stat st;

	return geteuid() || (!fstat(f->fd, &st) && is_safe(&st));
}

void file_folder__done(struct file_folder *f)
{
	if (f->fd >= 0)
		(void)close(take_fd(&f->fd));
}
