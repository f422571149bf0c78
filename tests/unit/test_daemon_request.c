/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What a request over HTTP asks for, and who may ask. Where the daemon listens.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/listen.h"
#include "daemon/request.h"
#include "sample.h"

static const struct request_rules open_rules = {.local_only = true};
static const struct request_rules token_rules = {
	.token = "0123456789abcdef", .token_bytes = 16, .local_only = true};

static struct request get(const char *path)
{
	struct request_parts parts = {.method = "GET", .path = path};

	return request_of(&parts, &open_rules);
}

static void test_paths(void **state)
{
	static const struct {
		const char *path;
		enum request_what what;
		unsigned int status;
	} cases[] = {
		{"/", REQUEST_INDEX, 0},
		{"/healthz", REQUEST_HEALTH, 0},
		{"/metrics", REQUEST_METRICS, 0},
		{"/debug/pprof/profile", REQUEST_PROFILE, 0},
		{"/debug/pprof/gpu", REQUEST_PROFILE, 0},
		{"/debug/pprof/allocs", REQUEST_PROFILE, 0},
		{"/recordings", REQUEST_RECORDINGS, 0},
		{"/recordings/20261122T153607Z-14507-2", REQUEST_RECORDING, 0},
		{"", REQUEST_REFUSED, 404},
		{"/metrics/", REQUEST_REFUSED, 404},
		{"/debug/pprof/heap", REQUEST_REFUSED, 404},
		{"/recordings/", REQUEST_REFUSED, 404},
		{"/recordings/..", REQUEST_REFUSED, 404},
		{"/recordings/../../etc/passwd", REQUEST_REFUSED, 404},
		{"/recordings/1/2", REQUEST_REFUSED, 404},
		{"/recordings/11111111111111111111111111111111111111111111111", REQUEST_RECORDING,
		 0},
		{"/recordings/111111111111111111111111111111111111111111111111", REQUEST_REFUSED,
		 404},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct request r = get(cases[i].path);

		assert_int_equal(r.what, cases[i].what);
		assert_int_equal(r.status, cases[i].status);
		assert_true(r.what != REQUEST_REFUSED || r.why);
	}
	assert_int_equal(get("/debug/pprof/gpu").profile, PROFILE_GPU);
	assert_int_equal(get("/debug/pprof/allocs").profile, PROFILE_ALLOCS);
	assert_string_equal(get("/recordings/17-2").id, "17-2");
}

static void test_arguments(void **state)
{
	static const struct {
		const char *seconds, *pid;
		unsigned int status;
		uint32_t wanted_seconds;
		int32_t wanted_pid;
	} cases[] = {
		{NULL, NULL, 0, 30, 0},		 {"7", "42", 0, 7, 42},
		{"0", NULL, 0, 30, 0},		 {"600", NULL, 0, 600, 0},
		{"601", NULL, 400, 0, 0},	 {"-1", NULL, 400, 0, 0},
		{"", NULL, 400, 0, 0},		 {"1s", NULL, 400, 0, 0},
		{"1.5", NULL, 400, 0, 0},	 {" 1", NULL, 400, 0, 0},
		{NULL, "0", 400, 0, 0},		 {NULL, "x", 400, 0, 0},
		{NULL, "2147483648", 400, 0, 0}, {"99999999999999999999999", NULL, 400, 0, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct request_parts parts = {.method = "GET",
					      .path = "/debug/pprof/profile",
					      .seconds = cases[i].seconds,
					      .pid = cases[i].pid};
		struct request r = request_of(&parts, &open_rules);

		assert_int_equal(r.status, cases[i].status);
		if (r.status)
			continue;
		assert_int_equal(r.seconds, cases[i].wanted_seconds);
		assert_int_equal(r.pid, cases[i].wanted_pid);
	}
}

static void test_methods(void **state)
{
	static const char *const bad[] = {"POST", "PUT", "DELETE", "get", "", "OPTIONS", "TRACE"};
	struct request_parts parts = {.method = "HEAD", .path = "/metrics"};

	assert_true(request_of(&parts, &open_rules).head);
	parts.path = "/debug/pprof/profile";
	assert_int_equal(request_of(&parts, &open_rules).status, 405);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		parts = (struct request_parts){.method = bad[i], .path = "/metrics"};
		assert_int_equal(request_of(&parts, &open_rules).status, 405);
	}
	parts = (struct request_parts){.method = "GET", .path = "/metrics", .has_body = true};
	assert_int_equal(request_of(&parts, &open_rules).status, 413);
}

static unsigned int status_with(const char *path, const char *authorization)
{
	struct request_parts parts = {
		.method = "GET", .path = path, .authorization = authorization};

	return request_of(&parts, &token_rules).status;
}

/* As browsers and 'go tool pprof' send it. */
static unsigned int status_of_password(const char *password)
{
	struct request_parts parts = {.method = "GET",
				      .path = "/metrics",
				      .authorization = "Basic eDp5",
				      .password = password};

	return request_of(&parts, &token_rules).status;
}

static void test_token(void **state)
{
	assert_int_equal(status_with("/metrics", "Bearer 0123456789abcdef"), 0);
	assert_int_equal(status_with("/metrics", "bearer   0123456789abcdef"), 0);
	assert_int_equal(status_with("/metrics", NULL), 401);
	assert_int_equal(status_with("/metrics", ""), 401);
	assert_int_equal(status_with("/metrics", "Bearer"), 401);
	assert_int_equal(status_with("/metrics", "Bearer "), 401);
	assert_int_equal(status_with("/metrics", "Bearer 0123456789abcdeF"), 401);
	assert_int_equal(status_with("/metrics", "Bearer 0123456789abcde"), 401);
	assert_int_equal(status_with("/metrics", "Bearer 0123456789abcdef0"), 401);
	assert_int_equal(status_with("/metrics", "Basic 0123456789abcdef"), 401);
	assert_int_equal(status_of_password("0123456789abcdef"), 0);
	assert_int_equal(status_of_password(""), 401);
	assert_int_equal(status_of_password("0123456789abcde"), 401);
	assert_int_equal(status_of_password("0123456789abcdef0"), 401);
	/* Nobody learns what there is. */
	assert_int_equal(status_with("/nothing", NULL), 401);
	assert_int_equal(status_with("/healthz", NULL), 0);
	assert_false(request_same_secret("", 0, "x", 1));
	assert_false(request_same_secret(NULL, 0, "x", 1));
	assert_false(request_same_secret("ab", 2, "a", 1));
	assert_true(request_same_secret("ab", 2, "ab", 2));
}

static unsigned int status_of_host(const char *host)
{
	struct request_parts parts = {.method = "GET",
				      .path = "/metrics",
				      .host = host,
				      .authorization = "Bearer 0123456789abcdef"};

	/* A token does not make up for it: a browser may send one that it knows. */
	assert_int_equal(request_of(&parts, &token_rules).status,
			 request_of(&parts, &open_rules).status);
	return request_of(&parts, &open_rules).status;
}

/* By whom a request is, where that is what matters. */
static void test_outsiders(void **state)
{
	const struct request_rules rules = {.outsiders = "not for you"};
	struct request_parts parts = {.method = "GET", .path = "/healthz"};

	assert_int_equal(request_of(&parts, &rules).status, 403);
	assert_string_equal(request_of(&parts, &rules).why, "not for you");
	parts.method = "POST";
	assert_int_equal(request_of(&parts, &rules).status, 403);
	parts = (struct request_parts){
		.method = "GET", .path = "/metrics", .host = "any.name", .is_trusted = true};
	assert_int_equal(request_of(&parts, &rules).status, 0);
}

/* A page of another site, in a browser here, must not read what we tell. */
static void test_hosts(void **state)
{
	assert_int_equal(status_of_host(NULL), 0);
	assert_int_equal(status_of_host("localhost:9477"), 0);
	assert_int_equal(status_of_host("LOCALHOST"), 0);
	assert_int_equal(status_of_host("127.0.0.1:9477"), 0);
	assert_int_equal(status_of_host("[::1]:9477"), 0);
	assert_int_equal(status_of_host("evil.example:9477"), 403);
	assert_int_equal(status_of_host("localhost.evil.example"), 403);
	assert_int_equal(status_of_host("127.0.0.1.evil.example"), 403);
}

static void test_listen(void **state)
{
	static const char *const bad[] = {"",
					  ":",
					  "x",
					  "127.0.0.1",
					  "1.2.3.4:",
					  "host:80",
					  "127.0.0.1:65536",
					  "::1:80",
					  "[::1]",
					  "[::1:80",
					  "[127.0.0.1]:80",
					  "[]:80",
					  ":80",
					  "127.0.0.1:-1"};
	static const struct {
		const char *text;
		bool local;
	} good[] = {{"80", true},	   {"127.0.0.1:0", true}, {"127.9.9.9:80", true},
		    {"[::1]:80", true},	   {"0.0.0.0:80", false}, {"[::]:80", false},
		    {"10.0.0.1:80", false}};
	struct sockaddr_storage address;
	socklen_t bytes;

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(listen_parse(bad[i], &address, &bytes), -EINVAL);
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		assert_int_equal(listen_parse(good[i].text, &address, &bytes), 0);
		assert_int_equal(listen_is_local(&address), good[i].local);
	}
}

static void test_token_file(void **state)
{
	char *path = strdup(sample_path("token")), *link_path = strdup(sample_path("link"));
	struct reason why;
	char *token = NULL;
	size_t bytes;

	sample_write_file(path, "0123456789abcdef \r\n\n", 20);
	assert_int_equal(chmod(path, 0600), 0);
	assert_int_equal(listen_read_token(path, &why, &token, &bytes), 0);
	assert_int_equal(bytes, 16);
	assert_string_equal(token, "0123456789abcdef");
	free(token);
	for (mode_t bit = 1; bit < 0100; bit <<= 1) {
		assert_int_equal(chmod(path, 0600 | bit), 0);
		assert_int_equal(listen_read_token(path, &why, &token, &bytes), -EPERM);
		assert_non_null(strstr(why.text, "chmod 600"));
	}
	assert_int_equal(chmod(path, 0600), 0);
	assert_int_equal(symlink(path, link_path), 0);
	assert_int_equal(listen_read_token(link_path, &why, &token, &bytes), -ELOOP);
	if (!geteuid()) {
		assert_int_equal(chown(path, 65534, 65534), 0);
		assert_int_equal(listen_read_token(path, &why, &token, &bytes), -EPERM);
		assert_non_null(strstr(why.text, "user 65534"));
		assert_int_equal(chown(path, 0, 0), 0);
	}
	sample_write_file(path, "short\n", 6);
	assert_int_equal(listen_read_token(path, &why, &token, &bytes), -EINVAL);
	sample_write_file(path, "0123456789abcdef\0x", 18);
	assert_int_equal(listen_read_token(path, &why, &token, &bytes), -EINVAL);
	assert_int_equal(listen_read_token(sample_path("none"), &why, &token, &bytes), -ENOENT);
	/* A pipe that nobody writes into holds nobody up. */
	assert_int_equal(mkfifo(sample_path("pipe"), 0600), 0);
	assert_int_equal(listen_read_token(sample_path("pipe"), &why, &token, &bytes), -EINVAL);
	free(path);
	free(link_path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paths),	   cmocka_unit_test(test_arguments),
		cmocka_unit_test(test_methods),	   cmocka_unit_test(test_token),
		cmocka_unit_test(test_hosts),	   cmocka_unit_test(test_listen),
		cmocka_unit_test(test_token_file), cmocka_unit_test(test_outsiders),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
