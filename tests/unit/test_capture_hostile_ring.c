/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A process that cuts what gpuprof takes for its collector's ring, between the looks at it.
 */
#include "capture/collector/ring_reader.h"

#include "common/clock.h"
#include "wire.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define RING_BYTES (4096 + (1 << 20))
#define TRIES	   4000
#define LIMIT_S	   20

/* Large when it is looked at, small once nothing can shrink it any more. */
static void make_ring(unsigned *seed)
{
	struct gp_ring_page page = {.magic = GP_RING_MAGIC,
				    .wire_version = GP_WIRE_VERSION,
				    .data_bytes = RING_BYTES - 4096,
				    .head = 1 << 19};
	struct timespec pause = {.tv_nsec = (long)(rand_r(seed) % 20000)};
	int fd = memfd_create(GP_RING_NAME, MFD_ALLOW_SEALING);

	if (ftruncate(fd, RING_BYTES) || pwrite(fd, &page, sizeof(page), 0) < 0)
		_exit(1);
	(void)nanosleep(&pause, NULL);
	if (ftruncate(fd, 4096) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK))
		_exit(1);
	pause.tv_nsec = (long)(rand_r(seed) % 100000);
	(void)nanosleep(&pause, NULL);
	(void)close(fd);
}

static pid_t start_hostile(void)
{
	pid_t pid = fork();
	unsigned seed = 5;

	if (pid)
		return pid;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)prctl(PR_SET_TIMERSLACK, 1UL, 0, 0, 0);
	for (;;)
		make_ring(&seed);
}

static int take_nothing(const void *event, size_t bytes, void *arg)
{
	return 0;
}

/* A ring of its first size would be read beyond the file's end: SIGBUS. */
static void test_cut_as_it_is_sealed(void **state)
{
	pid_t pid = start_hostile();
	uint64_t end_ns = clock_now_ns() + LIMIT_S * 1000000000ULL;
	int found_nr = 0;

	assert_true(pid > 0);
	for (int i = 0; i < TRIES && clock_now_ns() < end_ns; i++) {
		struct ring_reader *r = NULL;
		struct reason why = {""};
		int err = ring_reader__open(pid, 0, &why, &r);

		found_nr += err != -ENOENT;
		if (err)
			continue;
		(void)ring_reader__drain(r, take_nothing, NULL);
		ring_reader__free(r);
	}
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_true(found_nr > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cut_as_it_is_sealed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
