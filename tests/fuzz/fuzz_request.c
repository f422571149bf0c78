/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Any request, its parts separated by newlines: what it is taken for is within what there is, and
 * nobody gets in without the token.
 */
#include "daemon/listen.h"
#include "daemon/request.h"
#include "fuzz/fuzz_seed.h"

#include <string.h>

#define PARTS 8

static const char token[] = "0123456789abcdef";

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const char *const seeds[] = {
		"GET\n/metrics\nlocalhost\nBearer 0123456789abcdef\n30\n1\n",
		"GET\n/debug/pprof/profile\n127.0.0.1:1\n\n600\n2147483647\n",
		"HEAD\n/recordings/20261122T153607Z-14507-2\n[::1]:9477\nBasic x\n\n\n1",
		"POST\n/\n",
		"GET\n/metrics\nlocalhost\nBasic x\n30\n1\n\n0123456789abcdef",
	};

	for (size_t i = 0; i < sizeof(seeds) / sizeof(*seeds); i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "seed%zu", i);
		fuzz_seed(*argc, *argv, name, seeds[i], strlen(seeds[i]));
	}
	return 0;
}

static void check(const struct request *r)
{
	if (r->what > REQUEST_RECORDING || (unsigned int)r->profile > PROFILE_ALLOCS)
		abort();
	if (r->what == REQUEST_REFUSED && (r->status < 400 || r->status > 499 || !r->why))
		abort();
	if (r->what == REQUEST_PROFILE &&
	    (!r->seconds || r->seconds > PROFILES_SECONDS_MAX || r->pid < 0))
		abort();
	if (r->what == REQUEST_RECORDING && (!store_is_id(r->id) || strpbrk(r->id, "./")))
		abort();
}

static void ask(char *const parts[PARTS])
{
	struct request_rules rules = {.local_only = true};
	struct request_parts request = {
		.method = parts[0] ? parts[0] : "",
		.path = parts[1] ? parts[1] : "",
		.host = parts[2],
		.authorization = parts[3],
		.seconds = parts[4],
		.pid = parts[5],
		.has_body = parts[6] && *parts[6],
		.password = parts[7],
	};
	struct request r = request_of(&request, &rules);

	check(&r);
	rules.token = token;
	rules.token_bytes = strlen(token);
	r = request_of(&request, &rules);
	check(&r);
	if (r.what != REQUEST_REFUSED && r.what != REQUEST_HEALTH &&
	    (request.password ? strcmp(request.password, token) != 0
			      : !strstr(request.authorization, token)))
		abort();
	rules = (struct request_rules){.outsiders = "refused"};
	if (request_of(&request, &rules).what != REQUEST_REFUSED)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	CLEANUP(cleanup_free) char *text = malloc(bytes + 1);
	struct sockaddr_storage address;
	char *parts[PARTS] = {0}, *rest;
	socklen_t address_bytes;

	if (!text)
		return 0;
	memcpy(text, data, bytes);
	text[bytes] = '\0';
	(void)listen_parse(text, &address, &address_bytes);
	rest = text;
	for (size_t i = 0; i < PARTS && rest; i++)
		parts[i] = strsep(&rest, "\n");
	ask(parts);
	return 0;
}
