/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Serves HTTP over a Unix socket and over TCP. One thread without privileges serves all clients
 * and never waits for the capturing thread. The number of connections at each socket, their
 * duration and the bytes they may send are bounded.
 */
#ifndef GP_DAEMON_SERVER_H
#define GP_DAEMON_SERVER_H

#include "base/buf.h"
#include "base/reason.h"
#include "base/unix_socket.h"
#include "daemon/profiles.h"
#include "daemon/recording_store.h"

#include <stdbool.h>
#include <stdint.h>

/* Where it listens: at one of the two, or at both. */
struct server_options {
	const char *socket;		/* a path, for processes of this machine; NULL: none */
	const struct unix_group *group; /* may ask there, beside root and us; NULL: nobody else */
	/* For TCP: "ADDRESS:PORT", "[ADDRESS]:PORT" or "PORT" of this machine alone; NULL: none.
	 * Then token_file names what those who ask there must know. */
	const char *listen;
	const char *token_file;
	struct profiles *profiles;
	struct recording_store *store;
	/* Called in the server's thread. */
	void (*metrics)(void *arg, struct buf *out);
	void (*index)(void *arg, struct buf *out);
	bool (*healthy)(void *arg);
	void *arg;
};

struct server_counts {
	uint64_t answered_nr;	 /* requests with status 200 */
	uint64_t refused_nr;	 /* with another one */
	uint64_t too_slow_nr;	 /* connections that were ended because they took too long */
	uint64_t connections_nr; /* now */
};

struct server;

/* Opens the sockets; no client is answered yet. 0 or -errno with a reason. */
int server__new(const struct server_options *options, struct reason *why,
		struct server **ret_server);

/* Starts to answer. 0 or -errno with a reason. */
int server__start(struct server *s, struct reason *why);

/* Stops the thread and closes all connections, also those that wait for a profile. */
void server__free(struct server *s);

/* "127.0.0.1:9477": where it listens for TCP, NULL: nowhere. */
const char *server__address(const struct server *s);
void server__counts(const struct server *s, struct server_counts *ret_counts);

#endif /* GP_DAEMON_SERVER_H */
