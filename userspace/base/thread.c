/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Starts a thread and waits until it is set up, so that failures are reported to the starter.
 */
#include "base/thread.h"

#include "base/privileges.h"

#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/prctl.h>

struct start {
	const char *name;
	void *(*work)(void *);
	void *arg;
	bool limited;
	uint64_t capabilities;
	sem_t begun;
	int err;
};

static void *begin(void *arg)
{
	struct start *s = arg;
	void *(*work)(void *) = s->work;
	void *work_arg = s->arg;
	int err;

	(void)prctl(PR_SET_NAME, s->name, 0, 0, 0);
	err = s->limited ? privileges_keep(s->capabilities, NULL) : 0;
	s->err = err;
	/* From here on it is the starter's alone, who may have gone on. */
	(void)sem_post(&s->begun);
	return err ? NULL : work(work_arg);
}

/* Fills in all signals but the thread's own faults, which would end the process if they were
 * blocked. */
static void fill(sigset_t *all)
{
	static const int faults[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL};

	(void)sigfillset(all);
	for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++)
		(void)sigdelset(all, faults[i]);
}

static int start(pthread_t *ret_thread, struct start *s)
{
	sigset_t all, before;
	int err;

	if (sem_init(&s->begun, 0, 0))
		return -errno;
	fill(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	err = -pthread_create(ret_thread, NULL, begin, s);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	while (!err && sem_wait(&s->begun) && errno == EINTR)
		;
	(void)sem_destroy(&s->begun);
	if (!err && s->err)
		(void)pthread_join(*ret_thread, NULL);
	return err ? err : s->err;
}

int thread_start(pthread_t *ret_thread, const char *name, void *(*work)(void *), void *arg)
{
	struct start s = {.name = name, .work = work, .arg = arg};

	return start(ret_thread, &s);
}

int thread_start_with(pthread_t *ret_thread, const char *name, uint64_t capabilities,
		      void *(*work)(void *), void *arg)
{
	struct start s = {.name = name,
			  .work = work,
			  .arg = arg,
			  .limited = true,
			  .capabilities = capabilities};

	return start(ret_thread, &s);
}
