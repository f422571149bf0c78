/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A fork, because only a process can be killed on its own. What comes back lies in memory that both
 * share, and is copied only after the child has ended well.
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

#include "base/clock.h"
#include "base/shield.h"

#define LOOK_MS	     20
#define KILL_WAIT_MS 1000
#define MS_NS	     1000000ULL

struct area {
	uint64_t pulse_ns;
	bool stops;
	int result;
	_Alignas(16) unsigned char data[];
};

static struct area *own; /* the child's own, NULL in every other process */

void tracer_pulse(void)
{
	if (own)
		__atomic_store_n(&own->pulse_ns, clock_now_ns(), __ATOMIC_RELAXED);
}

void tracer_stops(void)
{
	tracer_pulse();
	if (own)
		__atomic_store_n(&own->stops, true, __ATOMIC_RELEASE);
}

static _Noreturn void child_main(struct area *area, pid_t parent, int (*fn)(void *, void *),
				 void *arg)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	(void)prctl(PR_SET_NAME, "gpuprof-tracer", 0, 0, 0);
	own = area;
	area->result = fn(area->data, arg);
	_exit(0);
}

/* With all signals blocked, the child's own faults excepted. */
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

/* Waits for its end or for some milliseconds. */
static void wait_a_little(int pidfd)
{
	static const struct timespec turn = {.tv_nsec = MS_NS};
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	if (pidfd >= 0)
		(void)poll(&p, 1, LOOK_MS);
	else
		(void)nanosleep(&turn, NULL);
}

/* Whether it has ended; *ret_well: by itself, with its work done. */
static bool has_ended(pid_t pid, bool *ret_well)
{
	struct rusage usage = {0};
	int status;
	pid_t waited = wait4(pid, &status, WNOHANG, &usage);

	if (!waited || (waited < 0 && errno == EINTR))
		return false;
	if (waited > 0)
		shield_add_cpu(&usage);
	*ret_well = waited > 0 && WIFEXITED(status) && !WEXITSTATUS(status);
	return true;
}

static bool is_overdue(const struct area *area, uint64_t end_ns)
{
	uint64_t now = clock_now_ns();
	uint64_t pulse_ns = __atomic_load_n(&area->pulse_ns, __ATOMIC_RELAXED);

	if (now >= end_ns)
		return true;
	return __atomic_load_n(&area->stops, __ATOMIC_ACQUIRE) && now > pulse_ns &&
	       now - pulse_ns >= TRACER_SILENCE_MS * MS_NS;
}

/* Watches it until it has ended. 0, -ETIMEDOUT or -ECANCELED. */
static int watch(pid_t pid, const struct area *area, uint32_t total_ms)
{
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	uint64_t end_ns = clock_now_ns() + total_ms * MS_NS;
	bool killed = false, well = false;

	while (!has_ended(pid, &well)) {
		wait_a_little(pidfd);
		/* Where the kernel lets nothing be killed, it is not waited for. */
		if (killed && clock_now_ns() >= end_ns)
			break;
		if (!killed && is_overdue(area, end_ns)) {
			(void)kill(pid, SIGKILL);
			killed = true;
			end_ns = clock_now_ns() + KILL_WAIT_MS * MS_NS;
		}
	}
	if (pidfd >= 0)
		(void)close(pidfd);
	if (well)
		return 0;
	return killed ? -ETIMEDOUT : -ECANCELED;
}

int tracer_run(int (*fn)(void *shared, void *arg), void *arg, void *shared, size_t bytes,
	       uint32_t total_ms)
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
	err = pid < 0 ? -errno : watch(pid, area, total_ms);
	if (!err) {
		memcpy(shared, area->data, bytes);
		err = area->result;
	}
	(void)munmap(area, all);
	return err;
}
