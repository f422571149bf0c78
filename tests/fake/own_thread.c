/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A stand-in for an allocator that has a thread of its own, like jemalloc's background thread. The
 * thread waits in the allocator's code for as long as the process lives.
 */
#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;

static void *wait_for_work(void *arg)
{
	(void)pthread_mutex_lock(&lock);
	for (;;)
		(void)pthread_cond_wait(&never, &lock);
	return NULL;
}

__attribute__((constructor)) static void begin(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, wait_for_work, NULL))
		abort();
}
