/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A child makes one call after the other and notes each in shared memory, so that when it is killed
 * the next child continues behind that call. A filter sees a call before the kernel checks its
 * arguments, so each call has arguments that the kernel refuses.
 */
#include "inject/seccomp_trial.h"

#include "inspect/access/status.h"
#include "inspect/process/process.h"
#include "inspect/process/rights.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOT_TRIED     1u
#define CLONE_INVALID 0x800 /* CLONE_SIGHAND without CLONE_VM */
#define WAKE	      1	    /* FUTEX_WAKE */

static const char no_path[1];
static int nobody_waits;

/* Calls that have an effect with -1 and zeros, or then fail as if refused by a filter. */
static const struct call {
	uint32_t number;
	long args[4];
} special[] = {
	{SYS_futex, {(long)&nobody_waits, WAKE, 0, 0}},
	{SYS_mmap, {0, 0, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS}},
	{SYS_mprotect, {1, 0, PROT_READ | PROT_EXEC, 0}},
	{SYS_munmap, {1, 0, 0, 0}},
	{SYS_brk, {0, 0, 0, 0}},
	{SYS_clone, {CLONE_INVALID, 0, 0, 0}},
	{SYS_open, {(long)no_path, 0, 0, 0}},
	{SYS_readlink, {(long)no_path, 0, 0, 0}},
	{SYS_rt_sigprocmask, {0, 0, 0, 8}},
	{SYS_rt_sigaction, {0, 0, 0, 8}},
	{SYS_poll, {0, -1, 0, 0}},
	{SYS_ppoll, {0, -1, 0, 0}},
};

/* Whether the call cannot be tried: it ends the thread, or only the kernel makes it, for an
 * interrupted call. */
static bool is_never_tried(uint32_t number)
{
	return number == SYS_exit || number == SYS_restart_syscall || number == SYS_rt_sigreturn;
}

/* Makes one call. Also runs in the child, so it makes system calls only. */
static uint32_t make_call(uint32_t number)
{
	static const long nothing[4] = {-1};
	const long *args = nothing;
	long result;

	if (is_never_tried(number))
		return SECCOMP_RET_ALLOW;
	for (size_t i = 0; i < sizeof(special) / sizeof(*special); i++)
		if (special[i].number == number)
			args = special[i].args;
	result = syscall((long)number, args[0], args[1], args[2], args[3], 0, 0);
	if (result >= 0 || (errno != EPERM && errno != ENOSYS && errno != EACCES))
		return SECCOMP_RET_ALLOW;
	return SECCOMP_RET_ERRNO;
}

static _Noreturn void child_main(const uint32_t *numbers, size_t nr, volatile uint32_t *actions)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)prctl(PR_SET_DUMPABLE, 0); /* it may be killed and must not dump core */
	for (size_t i = 0; i < nr; i++) {
		if (actions[i] != NOT_TRIED)
			continue;
		actions[i] = SECCOMP_RET_KILL_PROCESS;
		actions[i] = make_call(numbers[i]);
	}
	_exit(0);
}

/* Runs one child. 0 or -errno. */
static int try_rest(const uint32_t *numbers, size_t nr, volatile uint32_t *actions)
{
	pid_t child = fork();

	if (child < 0)
		return -errno;
	if (!child)
		child_main(numbers, nr, actions);
	while (waitpid(child, NULL, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

static bool any_untried(const volatile uint32_t *actions, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (actions[i] == NOT_TRIED)
			return true;
	return false;
}

int seccomp_trial(const uint32_t *numbers, size_t nr, uint32_t *ret_actions)
{
	const size_t bytes = SECCOMP_TRIAL_MAX * sizeof(uint32_t);
	uint32_t *shared;
	int err = 0;

	if (nr > SECCOMP_TRIAL_MAX)
		return -E2BIG;
	shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return -errno;
	for (size_t i = 0; i < nr; i++)
		shared[i] = NOT_TRIED;
	for (size_t i = 0; i < nr && !err && any_untried(shared, nr); i++)
		err = try_rest(numbers, nr, shared);
	if (!err && any_untried(shared, nr))
		err = -EIO;
	if (!err)
		memcpy(ret_actions, shared, nr * sizeof(*shared));
	(void)munmap(shared, bytes);
	return err;
}

static long count_filters(pid_t pid, pid_t tid)
{
	return status_read_number(pid, tid, "Seccomp_filters", 0);
}

bool seccomp_trial_fits(const struct target_process *p, int tid)
{
	long filters;

	/* Both must be in one container: outside, equal numbers say nothing about the filters. */
	if (p->other_pid_ns || rights_in_first_pid_namespace() != 0)
		return false;
	filters = count_filters(p->pid, tid);
	return filters > 0 && filters == count_filters(0, 0);
}
