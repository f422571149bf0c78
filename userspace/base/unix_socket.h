/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Sockets with a path, between processes of this machine. A path can be swapped between two system
 * calls that name it, so nothing here uses one twice: the folder is opened once, its owner and mode
 * are checked on the handle, and everything else goes by handles. Who is at the other end the
 * kernel says.
 */
#ifndef GP_BASE_UNIX_SOCKET_H
#define GP_BASE_UNIX_SOCKET_H

#include "base/reason.h"

#include <stdbool.h>
#include <sys/types.h>

/* A group whose members may connect too. */
struct unix_group {
	gid_t id;
	const char *name;
};

/* A socket that listens. All zero but the descriptors, which are -1, is none. */
struct unix_socket {
	int fd;	    /* blocks nobody; the owner may take it */
	int folder; /* where it lies */
	char *name; /* in there */
	dev_t device;
	ino_t inode;
};

#define UNIX_SOCKET_NONE                                                                           \
	{                                                                                          \
		.fd = -1, .folder = -1                                                             \
	}

/* The folder for sockets that have no other: /run/gpuprof for root, $XDG_RUNTIME_DIR/gpuprof for
 * others. NULL: there is none, or no memory. To be freed. */
char *unix_socket_folder(void);

/* Opens a folder that is root's or ours, and no one else's to write unless its sticky bit keeps
 * each to what is theirs. A descriptor or -errno with a reason. */
int unix_socket_open_folder(const char *path, struct reason *why);

/* Makes that folder where it is missing, open to be looked into by all where it is root's: each
 * socket says for itself who may connect. 0 or -errno with a reason. */
int unix_socket_make_folder(const char *folder, struct reason *why);

/* Listens at `path`, in a folder that unix_socket_open_folder() takes. Takes away a socket of our
 * own that nobody listens at. Its owner and the group (NULL: none) may connect. 0 or -errno with a
 * reason. */
int unix_socket__listen(struct unix_socket *s, const char *path, const struct unix_group *group,
			struct reason *why);

/* Closes it, and takes its name away if that still leads to it. Fine to call again. */
void unix_socket__done(struct unix_socket *s);

/* In a signal handler whose process ends now: takes the names of all of them away. */
void unix_socket__abandon_all(void);

/* Connects to what listens at `path`, if that is root's or our own; a symbolic link is none. A
 * descriptor that blocks, or -errno with a reason: -ECONNREFUSED where nobody listens there any
 * more, -EPERM where the socket is another user's. */
int unix_socket_connect(const char *path, struct reason *why);

/* Whether the process at the other end is root's, ours, or (`group` not NULL) one of the group. As
 * the kernel noted when it connected; for the one that connected, when the other began to listen.
 */
bool unix_socket_is_trusted(int fd, const struct unix_group *group);

#endif /* GP_BASE_UNIX_SOCKET_H */
