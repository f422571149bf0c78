/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Captures the processes it discovers and serves the results over HTTP. Three threads: the
 * caller's only captures; one reads the recordings and adds them up; one serves. Only the first
 * has privileges, and it never waits for the others: what the second cannot keep up with is
 * dropped whole and counted.
 */
#ifndef GP_DAEMON_DAEMON_H
#define GP_DAEMON_DAEMON_H

#include "base/reason.h"
#include "base/unix_socket.h"
#include "capture/capture.h"
#include "daemon/process_discovery.h"

#include <stdbool.h>
#include <stdint.h>

struct daemon_options {
	struct capture_options capture;
	struct process_discovery_options find;
	const char *socket; /* as in struct server_options, each */
	const struct unix_group *group;
	const char *listen;
	const char *token_file;
	const char *folder;  /* for recordings; NULL: they are kept in memory */
	uint64_t keep_bytes; /* of recordings, at most */
	uint64_t period_ns;  /* of a recording, at most */
};

struct daemon;

/* Sets everything up, then drops privileges. Borrows what the options point to. 0 or -errno with a
 * reason. */
int daemon__new(const struct daemon_options *options, struct reason *why,
		struct daemon **ret_daemon);

/* "127.0.0.1:9477": where it listens for TCP, NULL: nowhere. */
const char *daemon__address(const struct daemon *d);

/* Does the work that is due, for some milliseconds. */
void daemon__poll(struct daemon *d);

void daemon__free(struct daemon *d);

#endif /* GP_DAEMON_DAEMON_H */
