/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What a filter does to each call is seen by making it in a child, whichever way the filter has.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inject/seccomp_trial.h"

#define NR(array) (sizeof(array) / sizeof((array)[0]))

/* What injection and the collector call, and some that would block or harm if they were let. */
static const uint32_t numbers[] = {
	SYS_read,
	SYS_write,
	SYS_open,
	SYS_close,
	SYS_fstat,
	SYS_poll,
	SYS_lseek,
	SYS_mmap,
	SYS_mprotect,
	SYS_munmap,
	SYS_brk,
	SYS_rt_sigaction,
	SYS_rt_sigprocmask,
	SYS_pread64,
	SYS_sched_yield,
	SYS_madvise,
	SYS_nanosleep,
	SYS_getpid,
	SYS_clone,
	SYS_exit,
	SYS_fcntl,
	SYS_ftruncate,
	SYS_getcwd,
	SYS_readlink,
	SYS_prctl,
	SYS_gettid,
	SYS_futex,
	SYS_sched_getaffinity,
	SYS_clock_gettime,
	SYS_clock_nanosleep,
	SYS_openat,
	SYS_newfstatat,
	SYS_unlinkat,
	SYS_ppoll,
	SYS_set_robust_list,
	SYS_fallocate,
	SYS_process_vm_readv,
	SYS_getrandom,
	SYS_memfd_create,
	SYS_membarrier,
	334 /* rseq */,
	435 /* clone3 */,
};

static int refuse_two(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = NR(code), .filter = code};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

static void test_without_a_filter(void **state)
{
	uint32_t actions[NR(numbers)];

	assert_int_equal(seccomp_trial(numbers, NR(numbers), actions), 0);
	for (size_t i = 0; i < NR(numbers); i++)
		if (actions[i] != SECCOMP_RET_ALLOW)
			fail_msg("call %u: %x", numbers[i], actions[i]);
}

/* Which call is not as the filter says, plus 1; 0: none. For a child, which keeps the filter. */
static int try_filtered(void)
{
	uint32_t actions[NR(numbers)];

	if (refuse_two() || seccomp_trial(numbers, NR(numbers), actions))
		return 255;
	for (size_t i = 0; i < NR(numbers); i++) {
		uint32_t wanted = numbers[i] == SYS_memfd_create ? SECCOMP_RET_ERRNO
				  : numbers[i] == SYS_membarrier ? SECCOMP_RET_KILL_PROCESS
								 : SECCOMP_RET_ALLOW;

		if (actions[i] != wanted)
			return (int)i + 1;
	}
	return 0;
}

static void test_with_a_filter(void **state)
{
	pid_t child = fork();
	int status = -1;

	if (!child)
		_exit(try_filtered());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without_a_filter),
		cmocka_unit_test(test_with_a_filter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
