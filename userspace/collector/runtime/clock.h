/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The kernel's clocks in nanoseconds. Reading them is async-signal-safe, and errno stays as it is.
 */
#ifndef GP_COLLECTOR_RUNTIME_CLOCK_H
#define GP_COLLECTOR_RUNTIME_CLOCK_H

#include <stdint.h>
#include <time.h>

#define SECOND_NS 1000000000ULL

static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts = {0};

	(void)clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * SECOND_NS + (uint64_t)ts.tv_nsec;
}

/* Of CLOCK_MONOTONIC, as all events have it. */
static inline uint64_t clock_now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* A millisecond; errno may change. For the collector's own thread, or the one that ends the
 * process. */
static inline void clock_sleep_ms(void)
{
	static const struct timespec ms = {.tv_nsec = 1000000};

	(void)nanosleep(&ms, NULL);
}

#endif /* GP_COLLECTOR_RUNTIME_CLOCK_H */
