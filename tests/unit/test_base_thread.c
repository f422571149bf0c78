/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Threads: their name, their signals, and what they may do from their first instruction on.
 */
#include <linux/capability.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/thread.h"

struct seen {
	char name[16];
	sigset_t blocked;
	uint64_t effective, permitted;
	int no_new_privileges;
};

static void look(struct seen *ret_seen)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];

	(void)prctl(PR_GET_NAME, ret_seen->name, 0, 0, 0);
	(void)pthread_sigmask(SIG_SETMASK, NULL, &ret_seen->blocked);
	(void)syscall(SYS_capget, &head, data);
	ret_seen->effective = data[0].effective | (uint64_t)data[1].effective << 32;
	ret_seen->permitted = data[0].permitted | (uint64_t)data[1].permitted << 32;
	ret_seen->no_new_privileges = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);
}

static void *work(void *arg)
{
	look(arg);
	return arg;
}

static void test_ordinary(void **state)
{
	struct seen own = {.name = ""}, seen = {.name = ""};
	pthread_t thread;
	void *result;

	look(&own);
	assert_int_equal(thread_start(&thread, "a-name", work, &seen), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_ptr_equal(result, &seen);
	assert_string_equal(seen.name, "a-name");
	assert_int_equal(seen.effective, own.effective);
	assert_true(sigismember(&seen.blocked, SIGTERM) && sigismember(&seen.blocked, SIGUSR2));
	/* What it does to itself must find its handler. */
	assert_false(sigismember(&seen.blocked, SIGBUS) || sigismember(&seen.blocked, SIGSEGV));
}

static void test_limited(void **state)
{
	const uint64_t keep = 1ULL << CAP_CHOWN;
	struct seen own = {.name = ""}, seen = {.name = ""}, after = {.name = ""};
	pthread_t thread;

	look(&own);
	assert_int_equal(thread_start_with(&thread, "none", 0, work, &seen), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(seen.effective | seen.permitted, 0);
	assert_int_equal(seen.no_new_privileges, 1);
	assert_int_equal(thread_start_with(&thread, "one", keep, work, &seen), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(seen.permitted, own.permitted & keep);
	/* It is the thread's alone. */
	look(&after);
	assert_int_equal(after.effective, own.effective);
	assert_int_equal(after.no_new_privileges, own.no_new_privileges);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ordinary),
		cmocka_unit_test(test_limited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
