/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Parses a request. Whether the client may ask is decided before what it asks for.
 */
#include "daemon/request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/banned.h"

#define SECONDS_DEFAULT 30 /* as Go's */

bool request_same_secret(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
	const volatile unsigned char *x = a, *y = b;
	unsigned char differ = a_bytes != b_bytes;

	/* The loop is as long as the secret, whatever was sent. */
	for (size_t i = 0; i < b_bytes; i++)
		differ |= (unsigned char)(y[i] ^ (a_bytes ? x[i < a_bytes ? i : 0] : ~y[i]));
	return !differ;
}

static struct request refuse(unsigned int status, const char *why)
{
	return (struct request){.status = status, .why = why};
}

static bool has_token(const struct request_parts *parts, const struct request_rules *rules)
{
	static const char scheme[] = "Bearer ";
	const char *at = parts->authorization;

	/* Clients that cannot send a header of their choice, such as browsers and 'go tool pprof',
	 * send the token as a password. */
	if (parts->password)
		return request_same_secret(parts->password, strlen(parts->password), rules->token,
					   rules->token_bytes);
	if (!at || strncasecmp(at, scheme, sizeof(scheme) - 1))
		return false;
	at += sizeof(scheme) - 1;
	at += strspn(at, " ");
	return request_same_secret(at, strlen(at), rules->token, rules->token_bytes);
}

/* Whether the Host header is safe. A page in a browser on this machine could reach the daemon by a
 * host name of its own that resolves to this machine. An address, or 'localhost', cannot be such a
 * name. */
static bool is_local_host(const char *host)
{
	size_t nr;

	if (!host || host[0] == '[')
		return true;
	nr = strcspn(host, ":");
	return (nr == 9 && !strncasecmp(host, "localhost", nr)) ||
	       strspn(host, "0123456789.") == nr;
}

/* A whole number within bounds; false: it is none. */
static bool number(const char *text, uint32_t max, uint32_t *ret_number)
{
	unsigned long n;
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	n = strtoul(text, &end, 10);
	if (errno || *end || n > max)
		return false;
	*ret_number = (uint32_t)n;
	return true;
}

static struct request profile_of(const struct request_parts *parts, enum profile_kind kind)
{
	struct request r = {.what = REQUEST_PROFILE, .profile = kind, .seconds = SECONDS_DEFAULT};
	uint32_t n;

	if (parts->seconds && (!number(parts->seconds, PROFILES_SECONDS_MAX, &n)))
		return refuse(400, "seconds must be a whole number from 1 to 600");
	/* Go takes none of these for the default, too. */
	if (parts->seconds && n)
		r.seconds = n;
	if (parts->pid && (!number(parts->pid, INT32_MAX, &n) || !n))
		return refuse(400, "pid must be the number of a process");
	r.pid = parts->pid ? (int32_t)n : 0;
	return r;
}

static struct request recording_of(const char *id)
{
	struct request r = {.what = REQUEST_RECORDING};

	if (!store_is_id(id))
		return refuse(404, "there is no such recording");
	memcpy(r.id, id, strlen(id) + 1);
	return r;
}

static struct request of_path(const struct request_parts *parts)
{
	static const char recordings[] = "/recordings/";
	const char *path = parts->path;

	if (!strcmp(path, "/"))
		return (struct request){.what = REQUEST_INDEX};
	if (!strcmp(path, "/healthz"))
		return (struct request){.what = REQUEST_HEALTH};
	if (!strcmp(path, "/metrics"))
		return (struct request){.what = REQUEST_METRICS};
	if (!strcmp(path, "/debug/pprof/profile"))
		return profile_of(parts, PROFILE_CPU);
	if (!strcmp(path, "/debug/pprof/gpu"))
		return profile_of(parts, PROFILE_GPU);
	if (!strcmp(path, "/debug/pprof/allocs"))
		return profile_of(parts, PROFILE_ALLOCS);
	if (!strcmp(path, "/recordings"))
		return (struct request){.what = REQUEST_RECORDINGS};
	if (!strncmp(path, recordings, sizeof(recordings) - 1))
		return recording_of(path + sizeof(recordings) - 1);
	return refuse(404, "there is nothing here; / lists what there is");
}

struct request request_of(const struct request_parts *parts, const struct request_rules *rules)
{
	bool head = !strcmp(parts->method, "HEAD");
	struct request r;

	if (rules->outsiders && !parts->is_trusted)
		return refuse(403, rules->outsiders);
	if (rules->local_only && !is_local_host(parts->host))
		return refuse(403, "ask by 127.0.0.1 or localhost, not by another name");
	if (rules->token && strcmp(parts->path, "/healthz") && !has_token(parts, rules))
		return refuse(401, "a token is needed: send what is in the file that gpuprof "
				   "daemon --token-file names, as 'Authorization: Bearer TOKEN' or "
				   "as the password of any user");
	if (!head && strcmp(parts->method, "GET"))
		return refuse(405, "only GET and HEAD are answered");
	if (parts->has_body)
		return refuse(413, "a request with a body is not taken: send it without");
	r = of_path(parts);
	r.head = head;
	if (head && r.what == REQUEST_PROFILE)
		return refuse(405, "a profile is made for GET alone");
	return r;
}
