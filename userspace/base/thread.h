/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Threads of gpuprof beside its main one.
 */
#ifndef GP_BASE_THREAD_H
#define GP_BASE_THREAD_H

#include <pthread.h>
#include <signal.h>

/* Starts one to which no signal goes: those are for the threads that there were before. Faults of
 * its own still reach their handlers (base/shared_mapping.h). 0 or -errno. */
static inline int thread_start(pthread_t *ret_thread, void *(*work)(void *), void *arg)
{
	static const int faults[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL};
	sigset_t all, before;
	int err;

	(void)sigfillset(&all);
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		(void)sigdelset(&all, faults[i]);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	err = -pthread_create(ret_thread, NULL, work, arg);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return err;
}

#endif /* GP_BASE_THREAD_H */
