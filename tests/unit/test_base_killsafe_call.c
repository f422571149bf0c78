/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What runs behind the shield is ours in all but the signals.
 */
#include "base/killsafe_call.h"

#include "common/clock.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

struct work {
	int pipe[2];
	pid_t pid;
};

static int open_pipe(void *arg)
{
	struct work *work = arg;

	work->pid = getpid();
	return pipe(work->pipe) ? -1 : 42;
}

/* Descriptors and memory are there afterwards. */
static void test_shared(void **state)
{
	struct work work;
	char byte = 0;

	assert_int_equal(killsafe_call(open_pipe, &work), 42);
	assert_int_not_equal(work.pid, getpid());
	assert_int_equal(write(work.pipe[1], "x", 1), 1);
	assert_int_equal(read(work.pipe[0], &byte, 1), 1);
	assert_int_equal(byte, 'x');
	(void)close(work.pipe[0]);
	(void)close(work.pipe[1]);
	/* Nobody else's child. */
	assert_int_equal(waitpid(-1, NULL, WNOHANG | __WALL), -1);
}

static int begin_and_end(void *arg)
{
	const struct work *work = arg;

	(void)!write(work->pipe[1], "b", 1);
	for (int i = 0; i < 1000 && !killsafe_is_child(); i++)
		(void)usleep(10000);
	(void)!write(work->pipe[1], killsafe_is_child() ? "e" : "?", 1);
	return 0;
}

/* It is done to its end, and what was open is closed then. */
static void test_killed(void **state)
{
	struct work work;
	char byte = 0;
	int status;
	pid_t pid;

	assert_int_equal(pipe(work.pipe), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		(void)killsafe_call(begin_and_end, &work);
		_exit(0);
	}
	(void)close(work.pipe[1]);
	assert_int_equal(read(work.pipe[0], &byte, 1), 1);
	assert_int_equal(byte, 'b');
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(read(work.pipe[0], &byte, 1), 1);
	assert_int_equal(byte, 'e');
	assert_int_equal(read(work.pipe[0], &byte, 1), 0);
	(void)close(work.pipe[0]);
}

static int heard_nr;

static void hear(int number)
{
	(void)number;
	heard_nr++;
}

/* As by who ends all of a control group: both get it, and one heeds it. */
static int signal_both(void *arg)
{
	const pid_t *caller = arg;

	return kill(*caller, SIGTERM) || kill(getpid(), SIGTERM) || heard_nr;
}

static void test_signals(void **state)
{
	pid_t caller = getpid();

	assert_true(signal(SIGTERM, hear) != SIG_ERR);
	assert_int_equal(killsafe_call(signal_both, &caller), 0);
	assert_int_equal(heard_nr, 1);
	(void)signal(SIGTERM, SIG_DFL);
}

static int work_until_killed(void *arg)
{
	uint64_t begin = clock_ns(CLOCK_PROCESS_CPUTIME_ID);

	(void)arg;
	assert_false(killsafe_is_child());
	while (clock_ns(CLOCK_PROCESS_CPUTIME_ID) - begin < 50000000)
		;
	return kill(getpid(), SIGKILL);
}

/* What it took is known, and that it did not come to its end. */
static void test_ended(void **state)
{
	uint64_t before = killsafe_cpu_ns();

	assert_int_equal(killsafe_call(work_until_killed, NULL), -ECANCELED);
	assert_in_range(killsafe_cpu_ns() - before, 45000000, 1000000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shared),
		cmocka_unit_test(test_killed),
		cmocka_unit_test(test_signals),
		cmocka_unit_test(test_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
