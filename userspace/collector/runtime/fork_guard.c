/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * One word that whoever turns it to 1 has: our thread, or one that forks. A thread that is stopped
 * meanwhile must not hold up the target's forks for ever, so nobody waits longer than a while; who
 * did not get it goes on without.
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
static pthread_t owner; /* 0: nobody; the depth is the owner's */
static uint32_t depth;

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
