/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The kernel's clocks in nanoseconds. Reading one is async-signal-safe and leaves errno alone.
 */
#ifndef GP_COMMON_CLOCK_H
#define GP_COMMON_CLOCK_H

#include <stdint.h>
#include <time.h>

#define SECOND_NS 1000000000ULL

/* The time of `clock`; 0 if the kernel does not know it. */
static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts = {0};

	(void)clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * SECOND_NS + (uint64_t)ts.tv_nsec;
}

/* CLOCK_MONOTONIC, the clock of all events. */
static inline uint64_t clock_now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* Sleeps for a millisecond, or until a signal comes. May change errno. */
static inline void clock_sleep_ms(void)
{
	static const struct timespec ms = {.tv_nsec = 1000000};

	(void)nanosleep(&ms, NULL);
}

#endif /* GP_COMMON_CLOCK_H */
