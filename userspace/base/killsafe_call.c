/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Works like vfork(2): the caller is suspended, so the child may use its thread-local storage.
 */
#include "base/killsafe_call.h"

#include "common/clock.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define STACK_BYTES (256UL << 10)

struct task {
	int (*fn)(void *arg);
	void *arg;
	int result;
};

static uint64_t cpu_ns; /* of all children */
static pid_t parent;	/* the pid of this process, which the child reads */

static uint64_t ns_of(struct timeval t)
{
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_usec * 1000;
}

static int child(void *arg)
{
	struct task *task = arg;

	/* Whoever ends all that have a name means us by ours. */
	(void)prctl(PR_SET_NAME, "gp-shield", 0, 0, 0);
	(void)setsid();
	task->result = task->fn(task->arg);
	return 0;
}

static void wait_for(pid_t pid)
{
	struct rusage usage = {0};
	pid_t waited;

	do
		waited = wait4(pid, NULL, __WCLONE, &usage);
	while (waited < 0 && errno == EINTR);
	killsafe_add_cpu(&usage);
}

int killsafe_call(int (*fn)(void *arg), void *arg)
{
	/* It ends without a signal, so that nobody takes it for another child. */
	const int flags = CLONE_VM | CLONE_FILES | CLONE_VFORK;
	struct task task = {.fn = fn, .arg = arg, .result = -ECANCELED};
	unsigned char *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	sigset_t all, before;
	pid_t pid = -1;

	if (stack == MAP_FAILED)
		return fn(arg);
	__atomic_store_n(&parent, getpid(), __ATOMIC_RELAXED);
	/* For the child, which has handlers of ours that would tell us of a signal twice. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	pid = clone(child, stack + STACK_BYTES, flags, &task);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (pid < 0)
		task.result = fn(arg);
	else
		wait_for(pid);
	(void)munmap(stack, STACK_BYTES);
	return task.result;
}

bool killsafe_is_child(void)
{
	pid_t of = __atomic_load_n(&parent, __ATOMIC_RELAXED);

	return getpid() != of && (pid_t)syscall(SYS_getppid) != of;
}

void killsafe_add_cpu(const struct rusage *usage)
{
	(void)__atomic_fetch_add(&cpu_ns, ns_of(usage->ru_utime) + ns_of(usage->ru_stime),
				 __ATOMIC_RELAXED);
}

uint64_t killsafe_cpu_ns(void)
{
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID) + __atomic_load_n(&cpu_ns, __ATOMIC_RELAXED);
}
