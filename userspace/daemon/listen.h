/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Says where the daemon listens for TCP, and reads the secret token that clients must send.
 */
#ifndef GP_DAEMON_LISTEN_H
#define GP_DAEMON_LISTEN_H

#include "base/reason.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#define LISTEN_BYTES 64 /* of an address as text */

/* "ADDRESS:PORT", "[ADDRESS]:PORT" or "PORT": an address, no name. 0 or -EINVAL. */
int listen_parse(const char *text, struct sockaddr_storage *ret_address, socklen_t *ret_bytes);

/* Whether only this machine can reach it. */
bool listen_is_local(const struct sockaddr_storage *address);

/* A socket that listens there; *ret_text is where, with the port that it got for 0. A descriptor or
 * -errno. */
int listen_open(const struct sockaddr_storage *address, socklen_t bytes,
		char ret_text[LISTEN_BYTES]);

/* Reads the secret from a regular file that belongs to root or to us and that nobody else may read
 * or write. White space at its end is dropped. To be freed. 0 or -errno with a reason. */
int listen_read_token(const char *path, struct reason *why, char **ret_token, size_t *ret_bytes);

#endif /* GP_DAEMON_LISTEN_H */
