/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A lock without an owner: the exiting thread takes it and keeps it, whatever the collector's
 * thread does then.
 */
#include "collector/cupti/cupti_gate.h"

#include "collector/runtime/compat.h"
#include "common/clock.h"

#include <stdint.h>

#define EXIT_TRIES 2000 /* of 1 ms */

static uint32_t inside;	 /* a thread is */
static uint32_t exiting; /* a thread waits to enter at exit */
static uint32_t shut;	 /* nobody enters any more */

void cupti_gate__leave(void)
{
	__atomic_store_n(&inside, 0, __ATOMIC_RELEASE);
}

bool cupti_gate__enter(void)
{
	while (__atomic_exchange_n(&inside, 1, __ATOMIC_ACQUIRE)) {
		if (__atomic_load_n(&shut, __ATOMIC_ACQUIRE))
			return false;
		clock_sleep_ms();
	}
	if (!__atomic_load_n(&shut, __ATOMIC_ACQUIRE))
		return true;
	cupti_gate__leave();
	return false;
}

bool cupti_gate__enter_at_exit(void)
{
	int tries = 0;

	if (__atomic_load_n(&shut, __ATOMIC_ACQUIRE))
		return false;
	__atomic_store_n(&exiting, 1, __ATOMIC_RELEASE);
	while (__atomic_exchange_n(&inside, 1, __ATOMIC_ACQUIRE)) {
		if (++tries > EXIT_TRIES) {
			cupti_gate__shut();
			return false;
		}
		clock_sleep_ms();
	}
	return true;
}

void cupti_gate__shut(void)
{
	__atomic_store_n(&shut, 1, __ATOMIC_RELEASE);
}

bool cupti_gate__is_exiting(void)
{
	return __atomic_load_n(&exiting, __ATOMIC_ACQUIRE);
}

void cupti_gate__forget(void)
{
	inside = exiting = 0;
}
