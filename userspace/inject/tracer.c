/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Forks, because only a process can be killed on its own. The child's own timer kills it, so that
 * nothing that blocks gpuprof keeps threads stopped. Its results are in shared memory and are
 * copied only after it has ended well.
 */
#include "inject/tracer.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/killsafe_call.h"
#include "common/clock.h"

#define LOOK_MS	       20 /* between two looks at the child */
#define MEANWHILE_MS   2  /* the same, when `meanwhile` has work to do */
#define KILL_WAIT_MS   1000
#define MS_NS	       1000000ULL
#define SEC_NS	       1000000000ULL
#define SILENCE_NS     (TRACER_SILENCE_MS * MS_NS)
#define TIMER_EARLY_NS (5 * MS_NS) /* by which clock readings may differ from the timer */

struct area {
	uint64_t pulse_ns; /* 0: silence does not count yet */
	int result;
	_Alignas(16) unsigned char data[];
};

/* Set in the child; NULL in every other process. */
static struct area *own;
static timer_t own_timer;

void tracer_stops(void)
{
	static const struct itimerspec silence = {
		.it_value = {.tv_sec = SILENCE_NS / SEC_NS, .tv_nsec = SILENCE_NS % SEC_NS}};

	if (!own)
		return;
	__atomic_store_n(&own->pulse_ns, clock_now_ns(), __ATOMIC_RELAXED);
	(void)timer_settime(own_timer, 0, &silence, NULL);
}

void tracer_pulse(void)
{
	if (own && own->pulse_ns)
		tracer_stops();
}

static _Noreturn void child_main(struct area *area, pid_t parent, int (*fn)(void *, void *),
				 void *arg)
{
	struct sigevent kill_us = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent || timer_create(CLOCK_MONOTONIC, &kill_us, &own_timer))
		_exit(1);
	(void)prctl(PR_SET_NAME, "gpuprof-tracer", 0, 0, 0);
	own = area;
	area->result = fn(area->data, arg);
	_exit(0);
}

/* Forks with all signals blocked, except the child's own faults. */
static pid_t fork_without_signals(void)
{
	static const int faults[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGABRT};
	sigset_t all, before;
	pid_t pid;

	(void)sigfillset(&all);
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		(void)sigdelset(&all, faults[i]);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	pid = fork();
	if (pid)
		(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return pid;
}

/* Waits for the child's end or for some milliseconds. */
static void wait_a_little(int pidfd, const struct tracer_meanwhile *meanwhile)
{
	static const struct timespec pause = {.tv_nsec = MS_NS};
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	if (meanwhile->fn)
		meanwhile->fn(meanwhile->arg);
	if (pidfd >= 0)
		(void)poll(&p, 1, meanwhile->fn ? MEANWHILE_MS : LOOK_MS);
	else
		(void)nanosleep(&pause, NULL);
}

/* Whether the child has ended. *ret_err: 0: by itself, with its work done; -ETIMEDOUT: it was
 * silent for too long; -ECANCELED. */
static bool has_ended(pid_t pid, const struct area *area, int *ret_err)
{
	uint64_t pulse_ns = __atomic_load_n(&area->pulse_ns, __ATOMIC_RELAXED);
	struct rusage usage = {0};
	int status;
	pid_t waited = wait4(pid, &status, WNOHANG, &usage);

	if (!waited || (waited < 0 && errno == EINTR))
		return false;
	*ret_err = -ECANCELED;
	if (waited < 0)
		return true;
	killsafe_add_cpu(&usage);
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		*ret_err = 0;
	else if (WIFSIGNALED(status) && pulse_ns &&
		 clock_now_ns() + TIMER_EARLY_NS >= pulse_ns + SILENCE_NS)
		*ret_err = -ETIMEDOUT;
	return true;
}

/* Waits until the child has ended. 0, -ETIMEDOUT or -ECANCELED. */
static int watch(pid_t pid, const struct area *area, uint32_t total_ms,
		 const struct tracer_meanwhile *meanwhile)
{
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	uint64_t end_ns = clock_now_ns() + total_ms * MS_NS;
	bool killed = false;
	int err = -ETIMEDOUT;

	while (!has_ended(pid, area, &err)) {
		wait_a_little(pidfd, meanwhile);
		if (clock_now_ns() < end_ns)
			continue;
		/* If the kernel cannot even kill the child, it is not waited for. */
		if (killed)
			break;
		(void)kill(pid, SIGKILL);
		killed = true;
		end_ns = clock_now_ns() + KILL_WAIT_MS * MS_NS;
	}
	if (pidfd >= 0)
		(void)close(pidfd);
	return err && killed ? -ETIMEDOUT : err;
}

int tracer_run(int (*fn)(void *shared, void *arg), void *arg, void *shared, size_t bytes,
	       uint32_t total_ms, const struct tracer_meanwhile *meanwhile)
{
	size_t all = sizeof(struct area) + bytes;
	struct area *area =
		mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid, parent = getpid();
	int err;

	if (area == MAP_FAILED)
		return -errno;
	memcpy(area->data, shared, bytes);
	pid = fork_without_signals();
	if (!pid)
		child_main(area, parent, fn, arg);
	err = pid < 0 ? -errno : watch(pid, area, total_ms, meanwhile);
	if (!err) {
		memcpy(shared, area->data, bytes);
		err = area->result;
	}
	(void)munmap(area, all);
	return err;
}
