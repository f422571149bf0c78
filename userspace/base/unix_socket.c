/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Binds and connects sockets through /proc/self/fd, which leads to what a handle has open, whatever
 * became of its name. It also allows paths longer than the 107 bytes of an address.
 */
#include "base/unix_socket.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/banned.h"

#define BACKLOG	  64
#define SHOWN_MAX 8 /* sockets of this process at a time */

/* Sockets whose name is to go. A signal handler reads it. */
static struct unix_socket *volatile listening[SHOWN_MAX];

char *unix_socket_folder(void)
{
	const char *base = getenv("XDG_RUNTIME_DIR");
	char *path;

	if (!geteuid())
		return strdup("/run/gpuprof");
	if (!base || *base != '/')
		return NULL;
	return asprintf(&path, "%s/gpuprof", base) < 0 ? NULL : path;
}

/* ---- folders ---- */

static bool is_ours(uid_t uid)
{
	return uid == 0 || uid == geteuid();
}

static int check_folder(int fd, const char *path, struct reason *why)
{
	struct stat st;

	if (fstat(fd, &st))
		return reason_set(why, -errno, "cannot look at '%s': %s", path, strerror(errno));
	if (!is_ours(st.st_uid))
		return reason_set(
			why, -EPERM,
			"will not put a socket into '%s', which is user %u's: name one in a "
			"folder of your own",
			path, (unsigned int)st.st_uid);
	if ((st.st_mode & 022) && !(st.st_mode & S_ISVTX))
		return reason_set(
			why, -EPERM,
			"will not put a socket into '%s', where others can write: name one in a "
			"folder of your own ('chmod go-w' makes it that)",
			path);
	return 0;
}

int unix_socket_open_folder(const char *path, struct reason *why)
{
	CLEANUP(cleanup_fd)
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int err;

	if (fd < 0)
		return reason_set(why, -errno, "cannot open the folder '%s'%s: %s", path,
				  errno == ENOTDIR || errno == ELOOP ? " itself, no link to it"
								     : "",
				  strerror(errno));
	err = check_folder(fd, path, why);
	return err ? err : take_fd(&fd);
}

int unix_socket_make_folder(const char *folder, struct reason *why)
{
	CLEANUP(cleanup_fd) int fd = -1;
	mode_t mode = geteuid() ? 0700 : 0755;
	struct stat st;

	if (mkdir(folder, mode) && errno != EEXIST)
		return reason_set(why, -errno, "cannot make the folder '%s': %s", folder,
				  strerror(errno));
	fd = unix_socket_open_folder(folder, why);
	if (fd < 0)
		return fd;
	/* As a mask has left it, or an earlier gpuprof. */
	if (!fstat(fd, &st) && st.st_uid == geteuid() && (st.st_mode & mode) != mode)
		(void)fchmod(fd, mode);
	return 0;
}

/* Splits a path. `*ret_folder` is the caller's to free, `*ret_name` points into `path`. */
static int split(const char *path, char **ret_folder, const char **ret_name)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	if (!*name || !strcmp(name, ".") || !strcmp(name, ".."))
		return -EISDIR;
	*ret_folder =
		slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
	*ret_name = name;
	return *ret_folder ? 0 : -ENOMEM;
}

/* ---- both ends ---- */

static int address_of(int handle, const char *name, struct sockaddr_un *ret_address)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int nr = snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d%s%s", handle,
			  name ? "/" : "", name ? name : "");

	if (nr < 0 || nr >= (int)sizeof(a.sun_path))
		return -ENAMETOOLONG;
	*ret_address = a;
	return 0;
}

static int connect_handle(int handle)
{
	CLEANUP(cleanup_fd) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un address;
	int err = fd < 0 ? -errno : address_of(handle, NULL, &address);

	if (!err && connect(fd, (struct sockaddr *)&address, sizeof(address)))
		err = -errno;
	return err ? err : take_fd(&fd);
}

static bool is_member(int fd, gid_t own, gid_t group)
{
	CLEANUP(cleanup_free) gid_t *groups = NULL;
	socklen_t bytes = 0;

	if (own == group)
		return true;
	/* Asked for no room, the kernel says how much it takes. */
	if (!getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, NULL, &bytes) || errno != ERANGE)
		return false;
	groups = malloc(bytes);
	if (!groups || getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &bytes))
		return false;
	for (size_t i = 0; i < bytes / sizeof(*groups); i++)
		if (groups[i] == group)
			return true;
	return false;
}

bool unix_socket_is_trusted(int fd, const struct unix_group *group)
{
	struct ucred who;
	socklen_t bytes = sizeof(who);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &bytes))
		return false;
	return is_ours(who.uid) || (group && is_member(fd, who.gid, group->id));
}

/* ---- to listen ---- */

/* Removes a socket of ours that nobody listens at, left by a killed process. Nobody else can
 * replace it: they cannot write to the folder, or it is sticky. */
static void remove_left(int folder, const char *name)
{
	CLEANUP(cleanup_fd) int handle = openat(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	int fd;

	if (handle < 0 || fstat(handle, &st) || !S_ISSOCK(st.st_mode) || st.st_uid != geteuid())
		return;
	fd = connect_handle(handle);
	if (fd == -ECONNREFUSED)
		(void)unlinkat(folder, name, 0);
	else if (fd >= 0)
		(void)close(fd);
}

/* Sets who may connect, before anybody can. */
static int give_to_group(struct unix_socket *s, const struct unix_group *group)
{
	CLEANUP(cleanup_fd)
	int handle = openat(s->folder, s->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	char path[32];
	struct stat st;

	if (handle < 0 || fstat(handle, &st))
		return -errno;
	s->device = st.st_dev;
	s->inode = st.st_ino;
	if (!group)
		return 0;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", handle);
	if (fchownat(handle, "", (uid_t)-1, group->id, AT_EMPTY_PATH) || chmod(path, 0660))
		return -errno;
	return 0;
}

static void remember(struct unix_socket *s)
{
	for (size_t i = 0; i < SHOWN_MAX; i++)
		if (!listening[i]) {
			listening[i] = s;
			return;
		}
}

static int bind_it(struct unix_socket *s)
{
	struct sockaddr_un address;
	int err;

	s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	/* The name gets the mode that the socket has: no mask of the whole process is touched. */
	if (s->fd < 0 || fchmod(s->fd, 0600))
		return -errno;
	err = address_of(s->folder, s->name, &address);
	if (err)
		return err;
	remove_left(s->folder, s->name);
	return bind(s->fd, (struct sockaddr *)&address, sizeof(address)) ? -errno : 0;
}

int unix_socket__listen(struct unix_socket *s, const char *path, const struct unix_group *group,
			struct reason *why)
{
	CLEANUP(cleanup_free) char *folder = NULL;
	const char *name;
	int err = split(path, &folder, &name);

	*s = (struct unix_socket)UNIX_SOCKET_NONE;
	if (!err) {
		s->folder = unix_socket_open_folder(folder, why);
		if (s->folder < 0)
			return s->folder;
		s->name = strdup(name);
		err = s->name ? bind_it(s) : -ENOMEM;
	}
	if (err) {
		unix_socket__done(s);
		return reason_set(why, err, "cannot listen at '%s': %s%s", path, strerror(-err),
				  err == -EADDRINUSE ? "; name another place with --socket" : "");
	}
	err = give_to_group(s, group);
	remember(s);
	if (err)
		(void)reason_set(why, err, "cannot give '%s' to the group '%s': %s", path,
				 group ? group->name : "", strerror(-err));
	else if (listen(s->fd, BACKLOG))
		err = reason_set(why, -errno, "cannot listen at '%s': %s", path, strerror(errno));
	if (err)
		unix_socket__done(s);
	return err;
}

/* The name may be another's by now. */
static void remove_name(const struct unix_socket *s)
{
	struct stat st;

	if (s->inode && !fstatat(s->folder, s->name, &st, AT_SYMLINK_NOFOLLOW) &&
	    st.st_dev == s->device && st.st_ino == s->inode)
		(void)unlinkat(s->folder, s->name, 0);
}

void unix_socket__done(struct unix_socket *s)
{
	for (size_t i = 0; i < SHOWN_MAX; i++)
		if (listening[i] == s)
			listening[i] = NULL;
	if (s->folder >= 0) {
		remove_name(s);
		(void)close(s->folder);
	}
	if (s->fd >= 0)
		(void)close(s->fd);
	free(s->name);
	*s = (struct unix_socket)UNIX_SOCKET_NONE;
}

void unix_socket__abandon_all(void)
{
	for (size_t i = 0; i < SHOWN_MAX; i++)
		if (listening[i])
			remove_name(listening[i]);
}

/* ---- to connect ---- */

static int refuse_owner(const char *path, uid_t uid, struct reason *why)
{
	return reason_set(why, -EPERM,
			  "will not talk to '%s', which is user %u's: ask as that user ('sudo -u "
			  "#%u gpuprof ctl ...')",
			  path, (unsigned int)uid, (unsigned int)uid);
}

int unix_socket_connect(const char *path, struct reason *why)
{
	CLEANUP(cleanup_fd) int handle = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC), fd = -1;
	struct stat st;

	if (handle < 0 || fstat(handle, &st))
		return reason_set(why, -errno, "nobody answers at '%s': %s", path, strerror(errno));
	if (!S_ISSOCK(st.st_mode))
		return reason_set(why, -ENOTSOCK,
				  "'%s' is no socket; 'gpuprof ctl' without --socket "
				  "finds the captures of the same user",
				  path);
	if (!is_ours(st.st_uid))
		return refuse_owner(path, st.st_uid, why);
	fd = connect_handle(handle);
	if (fd < 0) {
		int err = fd;

		return reason_set(why, err, "nobody answers at '%s': %s", path, strerror(-err));
	}
	if (!unix_socket_is_trusted(fd, NULL))
		return reason_set(why, -EPERM,
				  "will not talk at '%s': another user's process "
				  "listens there",
				  path);
	return take_fd(&fd);
}
