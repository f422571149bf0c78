/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Unix sockets with a path, between processes of this machine. A path can be swapped between two
 * system calls, so no path is used twice: the folder is opened once, its owner and mode are checked
 * on the handle, and everything else goes through handles. The kernel says who the peer is.
 */
#ifndef GP_BASE_UNIX_SOCKET_H
#define GP_BASE_UNIX_SOCKET_H

#include "base/reason.h"

#include <stdbool.h>
#include <sys/types.h>

/* A group whose members may connect. */
struct unix_group {
	gid_t id;
	const char *name;
};

/* A listening socket. All zero, with both descriptors -1, is none. */
struct unix_socket {
	int fd;	    /* non-blocking; the owner may take it */
	int folder; /* the folder that holds it */
	char *name; /* its name in the folder */
	dev_t device;
	ino_t inode;
};

#define UNIX_SOCKET_NONE                                                                           \
	{                                                                                          \
		.fd = -1, .folder = -1                                                             \
	}

/* Returns the default folder for sockets: /run/gpuprof for root, $XDG_RUNTIME_DIR/gpuprof for
 * others. NULL: there is none, or no memory. The caller frees. */
char *unix_socket_folder(void);

/* Opens a folder that belongs to root or to us, and that no one else may write to unless it is
 * sticky. Returns a descriptor, or -errno with a reason. */
int unix_socket_open_folder(const char *path, struct reason *why);

/* Creates the default folder if it is missing. Root's may be searched by all: each socket decides
 * who may connect. 0 or -errno with a reason. */
int unix_socket_make_folder(const char *folder, struct reason *why);

/* Listens at `path`, in a folder that unix_socket_open_folder() accepts. Replaces a socket of our
 * own that nobody listens at. Its owner and the group (NULL: none) may connect. 0 or -errno with a
 * reason. */
int unix_socket__listen(struct unix_socket *s, const char *path, const struct unix_group *group,
			struct reason *why);

/* Closes the socket, and removes its name if that still leads to it. May be called again. */
void unix_socket__done(struct unix_socket *s);

/* For signal handlers of a process that is about to end: removes the names of all sockets. */
void unix_socket__abandon_all(void);

/* Connects to the listener at `path` if it is root's or our own; a symbolic link is refused.
 * Returns a blocking descriptor, or -errno with a reason: -ECONNREFUSED where nobody listens any
 * more, -EPERM where the socket is another user's. */
int unix_socket_connect(const char *path, struct reason *why);

/* Whether the peer is root, us, or (`group` not NULL) a member of the group, as the kernel noted
 * when it connected; or, seen from the connecting side, when the peer began to listen. */
bool unix_socket_is_trusted(int fd, const struct unix_group *group);

#endif /* GP_BASE_UNIX_SOCKET_H */
