/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A lock: whoever changes `taken` from 0 to 1 holds it, be it our thread or one that forks. A
 * thread that is stopped while it holds the lock must not block the process's forks for ever. So
 * nobody waits longer than two seconds; whoever did not get the lock goes on without it.
 */
#include "collector/runtime/fork_guard.h"

#include "collector/runtime/compat.h"
#include "common/clock.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define TRIES 2000 /* of 1 ms */

static uint32_t taken;
static pthread_t owner; /* 0: nobody */
static uint32_t depth;	/* the owner's nested calls */

static bool is_owner(void)
{
	pthread_t now = __atomic_load_n(&owner, __ATOMIC_RELAXED);

	return now && pthread_equal(now, pthread_self());
}

void fork_guard__hold(void)
{
	int saved = errno;

	if (is_owner()) {
		depth++;
		return;
	}
	for (int i = 0; __atomic_exchange_n(&taken, 1, __ATOMIC_ACQUIRE); i++) {
		if (i >= TRIES) {
			errno = saved;
			return;
		}
		clock_sleep_ms();
	}
	errno = saved;
	__atomic_store_n(&owner, pthread_self(), __ATOMIC_RELAXED);
	depth = 1;
}

void fork_guard__release(void)
{
	if (!is_owner() || --depth)
		return;
	__atomic_store_n(&owner, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&taken, 0, __ATOMIC_RELEASE);
}

void fork_guard__forget(void)
{
	owner = 0;
	depth = 0;
	taken = 0;
}
