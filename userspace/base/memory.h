/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * How much memory this process uses and how much is left. A process that needs much of it must not
 * harm its neighbours.
 */
#ifndef GP_BASE_MEMORY_H
#define GP_BASE_MEMORY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct memory_now {
	uint64_t own; /* bytes, resident */
	/* Bytes that the kernel can give without swapping, on the machine and within the limits of
	 * this process's control groups. */
	uint64_t left;
};

/* Parses the texts of /proc/self/statm and /proc/meminfo. False: they lack the numbers. */
bool memory_parse(const char *statm, const char *meminfo, uint64_t page_bytes,
		  struct memory_now *ret);

/* Returns the bytes that the tightest control group leaves: its limit less its usage, where file
 * pages that were not used lately do not count. `cgroups` is the text of /proc/self/cgroup; `mount`
 * is where the hierarchies are mounted ("/sys/fs/cgroup"): version 2, version 1, or both. If a
 * group's path is not found below it, as in a container, the top group counts, which is the
 * container's own. UINT64_MAX: no limit. Source: the kernel's
 * Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst. */
uint64_t memory_group_left(const char *cgroups, const char *mount);

/* Reads the current numbers. False: unknown. */
bool memory_now(struct memory_now *ret);

/* Returns the bytes that another process could still get, within its control groups and the
 * machine. UINT64_MAX: unknown. */
uint64_t memory_left_of(pid_t pid);

/* Makes the kernel end this process, and its future children, first when memory runs out. For a
 * process that only reads and then ends. Has no effect where it is not permitted. */
void memory_end_me_first(void);

#endif /* GP_BASE_MEMORY_H */
