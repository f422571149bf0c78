/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A child that is forked while our thread walks the loaded libraries can use the loader.
 */
#include "collector/runtime/fork_guard.h"
#include "collector/runtime/libraries.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define LOOK_US	      200000
#define CHILD_LIMIT_S 5

static bool looking;

static int look_slowly(struct dl_phdr_info *info, size_t bytes, void *arg)
{
	__atomic_store_n(&looking, true, __ATOMIC_RELEASE);
	(void)usleep(LOOK_US);
	return 1;
}

static void *look(void *arg)
{
	(void)libraries__each(look_slowly, NULL);
	return NULL;
}

static int stop_at_once(struct dl_phdr_info *info, size_t bytes, void *arg)
{
	return 1;
}

static void test_fork_meanwhile(void **state)
{
	pthread_t thread;
	int status;
	pid_t child;

	assert_int_equal(pthread_atfork(fork_guard__hold, fork_guard__release, fork_guard__forget),
			 0);
	assert_int_equal(pthread_create(&thread, NULL, look, NULL), 0);
	while (!__atomic_load_n(&looking, __ATOMIC_ACQUIRE))
		(void)usleep(100);
	child = fork();
	if (!child) {
		(void)alarm(CHILD_LIMIT_S);
		(void)dl_iterate_phdr(stop_at_once, NULL);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	(void)pthread_join(thread, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_fork_meanwhile)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
