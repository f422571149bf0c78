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
	bool is_trusted; /* by who it is, as the kernel says */
};

struct request_rules {
	const char *token; /* NULL: none is needed */
	size_t token_bytes;
	bool local_only; /* it listens to this machine alone: no other name may lead here */
	/* Who is not trusted gets no answer but this one; NULL: it does not matter who asks. */
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

/* Judges a request by its parts; what is wrong with it is in `status` and `why`, borrowed. */
struct request request_of(const struct request_parts *parts, const struct request_rules *rules);

/* Whether both are the same, in a time that does not tell how much of them is. */
bool request_same_secret(const void *a, size_t a_bytes, const void *b, size_t b_bytes);

#endif /* GP_DAEMON_REQUEST_H */
