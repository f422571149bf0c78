/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Memory whose owner cuts it under our hands.
 */
#include "base/shared_mapping.h"

#include "base/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define BYTES (64 * 4096)

/* A file of sevens, mapped. */
static struct shared_mapping *map_sevens(int *ret_fd)
{
	struct shared_mapping *m = NULL;
	int fd = memfd_create("shared", 0);
	volatile unsigned char *at;

	assert_int_equal(ftruncate(fd, BYTES), 0);
	assert_int_equal(shared_mapping__new(fd, BYTES, &m), 0);
	at = shared_mapping__memory(m);
	for (size_t i = 0; i < BYTES; i++)
		at[i] = 7;
	*ret_fd = fd;
	return m;
}

static unsigned sum(const struct shared_mapping *m)
{
	const volatile unsigned char *at = shared_mapping__memory(m);
	unsigned nr = 0;

	for (size_t i = 0; i < BYTES; i++)
		nr += at[i];
	return nr;
}

/* Also for a thread to which no signal goes. */
static void *sum_in_thread(void *arg)
{
	return (void *)(uintptr_t)sum(arg);
}

static void test_reads_zeros_once_it_is_cut(void **state)
{
	int fd, other_fd;
	struct shared_mapping *m = map_sevens(&fd), *other = map_sevens(&other_fd);
	pthread_t thread;
	void *summed;

	assert_int_equal(sum(m), 7 * BYTES);
	assert_false(shared_mapping__is_lost(m));
	assert_int_equal(ftruncate(fd, 4096), 0);
	assert_int_equal(thread_start(&thread, "sum", sum_in_thread, m), 0);
	assert_int_equal(pthread_join(thread, &summed), 0);
	/* The first page may have been read before the rest was found to be gone. */
	assert_true((uintptr_t)summed <= 7 * 4096);
	assert_true(shared_mapping__is_lost(m));
	assert_int_equal(sum(m), 0);
	/* It can be written to, and the file sees nothing of it. */
	*(volatile unsigned char *)shared_mapping__memory(m) = 9;
	assert_int_equal(sum(m), 9);
	/* The others are as they were. */
	assert_false(shared_mapping__is_lost(other));
	assert_int_equal(sum(other), 7 * BYTES);
	shared_mapping__free(m);
	shared_mapping__free(other);
	(void)close(fd);
	(void)close(other_fd);
}

static void test_many_come_and_go(void **state)
{
	for (int i = 0; i < 200; i++) {
		int fd, kept_fd;
		struct shared_mapping *kept = map_sevens(&kept_fd), *m = map_sevens(&fd);

		assert_int_equal(ftruncate(fd, 0), 0);
		assert_int_equal(sum(m), 0);
		assert_true(shared_mapping__is_lost(m));
		assert_false(shared_mapping__is_lost(kept));
		shared_mapping__free(m);
		shared_mapping__free(kept);
		(void)close(fd);
		(void)close(kept_fd);
	}
}

static int said[2];

static void say(void)
{
	(void)!write(said[1], "d", 1);
}

/* Any other bus error ends the process as ever, after what was to be done before. */
static void test_other_faults_are_fatal(void **state)
{
	int status = 0;
	char c = 0;
	pid_t pid;

	assert_int_equal(pipe(said), 0);
	pid = fork();
	if (!pid) {
		int fd = memfd_create("plain", 0);
		volatile char *at;

		(void)signal(SIGBUS, SIG_DFL);
		shared_mapping_before_death(say);
		(void)!ftruncate(fd, 4096);
		at = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
		(void)!ftruncate(fd, 0);
		_exit(at[0]);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
	assert_int_equal(read(said[0], &c, 1), 1);
	assert_int_equal(c, 'd');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_other_faults_are_fatal),
		cmocka_unit_test(test_reads_zeros_once_it_is_cut),
		cmocka_unit_test(test_many_come_and_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
