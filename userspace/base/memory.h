/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What this process takes of the machine's memory. Who needs much of it must not bring harm to the
 * processes beside it.
 */
#ifndef GP_BASE_MEMORY_H
#define GP_BASE_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

struct memory_now {
	uint64_t own;  /* bytes, resident */
	uint64_t left; /* bytes that the kernel could give without swapping */
};

/* The files as /proc/self/statm and /proc/meminfo have them. False: they do not say. */
bool memory_parse(const char *statm, const char *meminfo, uint64_t page_bytes,
		  struct memory_now *ret);

/* Now. False: it is not known. */
bool memory_now(struct memory_now *ret);

/* If the kernel runs out of memory it is to end this process before all others, from now on, and
 * what it forks: for a process that only reads, and ends. Where that may not be, it stays as it
 * is. */
void memory_end_me_first(void);

#endif /* GP_BASE_MEMORY_H */
