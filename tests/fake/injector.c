/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Drives inject/ for the tests:
 *
 *     injector inject PID IMAGE [LIMIT_MS]    one injection
 *     injector remove PID                     one removal
 *     injector cycle PID IMAGE N [LIMIT_MS]   N times in and out; "-1": until killed
 *     injector hold TID                       trace a thread and do nothing, until stdin ends
 *     injector still PID LIBRARY MS [WAITING] hold all threads for MS, outside of the library or in
 *                                             one of its functions with WAITING in their names
 *
 * With DIE_AT=N in the environment it kills itself, and its tracer with it, just before the Nth
 * ptrace() or pwrite(), the only calls by which it acts on the target; the linker wraps them
 * (-Wl,--wrap). With HANG_AT=N its tracer hangs there.
 *
 * Prints one line of key=value for each success, the reason for a failure. Exit status: 0, or the
 * positive errno of the failure.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "inject/inject.h"
#include "inject/quiesce.h"

#define NAME (getenv("INJECT_NAME") ?: "gpuprof-test")

long __real_ptrace(int request, pid_t pid, void *address, void *data);
ssize_t __real_pwrite(int fd, const void *data, size_t bytes, off_t at);
long __wrap_ptrace(int request, pid_t pid, void *address, void *data);
ssize_t __wrap_pwrite(int fd, const void *data, size_t bytes, off_t at);

static long *acts_nr; /* shared with the tracer */
static long die_at, hang_at;
static pid_t driver;

static void act(void)
{
	long nr = __atomic_add_fetch(acts_nr, 1, __ATOMIC_RELAXED);

	while (nr == hang_at)
		(void)pause();
	if (nr != die_at)
		return;
	(void)kill(driver, SIGKILL);
	(void)kill(getpid(), SIGKILL);
}

static long number_of(const char *name)
{
	const char *text = getenv(name);

	return text ? atol(text) : 0;
}

static int prepare_acts(void)
{
	acts_nr = mmap(NULL, sizeof(*acts_nr), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		       -1, 0);
	die_at = number_of("DIE_AT");
	hang_at = number_of("HANG_AT");
	driver = getpid();
	return acts_nr == MAP_FAILED ? -errno : 0;
}

long __wrap_ptrace(int request, pid_t pid, void *address, void *data)
{
	act();
	return __real_ptrace(request, pid, address, data);
}

ssize_t __wrap_pwrite(int fd, const void *data, size_t bytes, off_t at)
{
	act();
	return __real_pwrite(fd, data, bytes, at);
}

static void cleanup_process(struct target_process **p)
{
	target_process__free(*p);
}

static int fail(int err, const char *what, const struct reason *why)
{
	fprintf(stderr, "%s: errno=%d %s\n", what, -err, why->text);
	return err;
}

static int put_in(pid_t pid, const char *image, size_t bytes, unsigned int limit_ms)
{
	CLEANUP(cleanup_process) struct target_process *p = NULL;
	struct inject_options o = {
		.name = NAME, .safe_point_limit_ms = limit_ms, .call_limit_ms = limit_ms};
	struct inject_result r;
	struct reason why = {0};
	int err = target_process__new(pid, &why, &p);

	if (!err)
		err = inject_library(p, image, bytes, &o, &why, &r);
	if (err)
		return fail(err, "inject", &why);
	printf("injected returned=%d reused=%d tid=%d stops=%u waited_us=%llu held_us=%llu\n",
	       r.returned, r.reused, r.tid, r.stops, (unsigned long long)r.waited_us,
	       (unsigned long long)r.held_us);
	(void)fflush(stdout);
	return 0;
}

static int take_out(pid_t pid, unsigned int limit_ms)
{
	CLEANUP(cleanup_process) struct target_process *p = NULL;
	struct inject_options o = {
		.name = NAME, .safe_point_limit_ms = limit_ms, .call_limit_ms = limit_ms};
	struct inject_result r = {0};
	struct reason why = {0};
	bool left = false;
	int err = target_process__new(pid, &why, &p);

	if (!err)
		err = inject_remove(p, &o, &why, &r, &left);
	if (err)
		return fail(err, "remove", &why);
	printf("removed left=%d tid=%d stops=%u held_us=%llu\n", left, r.tid, r.stops,
	       (unsigned long long)r.held_us);
	(void)fflush(stdout);
	return 0;
}

static int cycle(pid_t pid, const char *image, size_t bytes, long times, unsigned int limit_ms)
{
	int err = 0;

	for (long i = 0; !err && (times < 0 || i < times); i++) {
		err = put_in(pid, image, bytes, limit_ms);
		if (!err)
			err = take_out(pid, limit_ms);
	}
	return err;
}

static int while_still(bool all_out, void *arg)
{
	return usleep(1000 * *(useconds_t *)arg);
}

static int still(pid_t pid, const char *library, useconds_t ms, const char *waiting)
{
	CLEANUP(cleanup_process) struct target_process *p = NULL;
	const char *libraries[] = {library, NULL}, *functions[] = {waiting, NULL};
	struct quiesce_options o = {.libraries = libraries,
				    .waiting = waiting ? functions : NULL,
				    .thread_name = NAME,
				    .window_ms = 100,
				    .search_ms = 500};
	struct quiesce_result r;
	struct reason why = {0};
	int err = target_process__new(pid, &why, &p);

	if (!err)
		err = quiesce_threads(p, &o, while_still, &ms, &why, &r);
	if (err)
		return fail(err, "still", &why);
	printf("held held=%u waiting=%u stops=%u held_us=%llu\n", r.held_nr, r.waiting_nr, r.stops,
	       (unsigned long long)r.held_ns / 1000);
	return 0;
}

static int hold(pid_t tid)
{
	long ret = __real_ptrace(PTRACE_SEIZE, tid, NULL, NULL);

	printf("%s\n", ret ? "not held" : "held");
	(void)fflush(stdout);
	while (getchar() != EOF)
		;
	return ret ? 1 : 0;
}

int main(int argc, char **argv)
{
	char CLEANUP(cleanup_free) *image = NULL;
	size_t bytes = 0;
	pid_t pid;
	int err;

	if (argc < 3)
		return 2;
	err = prepare_acts();
	if (err)
		return -err;
	pid = (pid_t)atoi(argv[2]);
	if (!strcmp(argv[1], "hold"))
		return hold(pid);
	if (!strcmp(argv[1], "remove"))
		return -take_out(pid, argc > 3 ? (unsigned int)atoi(argv[3]) : 0);
	if (argc < 4)
		return 2;
	if (!strcmp(argv[1], "still"))
		return -still(pid, argv[3], argc > 4 ? (useconds_t)atoi(argv[4]) : 0,
			      argc > 5 ? argv[5] : NULL);
	err = file_read(argv[3], 64u << 20, &image, &bytes);
	if (err)
		return -err;
	if (!strcmp(argv[1], "cycle"))
		return -cycle(pid, image, bytes, argc > 4 ? atol(argv[4]) : 1,
			      argc > 5 ? (unsigned int)atoi(argv[5]) : 0);
	return -put_in(pid, image, bytes, argc > 4 ? (unsigned int)atoi(argv[4]) : 0);
}
