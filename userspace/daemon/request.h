/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Parses an HTTP request into what it asks for. Pure. Every byte of it comes from a client that
 * may be hostile.
 */
#ifndef GP_DAEMON_REQUEST_H
#define GP_DAEMON_REQUEST_H

#include "daemon/profiles.h"
#include "daemon/recording_store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* As they came; NULL: not there. */
struct request_parts {
	const char *method;
	const char *path;
	const char *host;
	const char *authorization;
	const char *password; /* of authorization, where that has one (Basic) */
	const char *seconds;
	const char *pid;
	bool has_body;
	bool is_trusted; /* by its user, as the kernel reports it */
};

struct request_rules {
	const char *token; /* NULL: none is needed */
	size_t token_bytes;
	bool local_only; /* it listens on this machine only: no other host name is accepted */
	/* The only answer for a client that is not trusted; NULL: every client is served. */
	const char *outsiders;
};

enum request_what {
	REQUEST_REFUSED = 0, /* see status and why */
	REQUEST_INDEX = 1,
	REQUEST_HEALTH = 2,
	REQUEST_METRICS = 3,
	REQUEST_PROFILE = 4,
	REQUEST_RECORDINGS = 5,
	REQUEST_RECORDING = 6,
};

struct request {
	enum request_what what;
	unsigned int status; /* of HTTP, where it is refused */
	const char *why;
	bool head; /* only headers are wanted */
	enum profile_kind profile;
	uint32_t seconds;
	int32_t pid; /* 0: all */
	char id[STORE_ID_BYTES];
};

/* Validates a request and says what it asks for. For a refused one `status` and `why`, borrowed,
 * say what is wrong with it. */
struct request request_of(const struct request_parts *parts, const struct request_rules *rules);

/* Whether both are the same. Takes the same time however many bytes agree. */
bool request_same_secret(const void *a, size_t a_bytes, const void *b, size_t b_bytes);

#endif /* GP_DAEMON_REQUEST_H */
