/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What this process takes of the machine's memory, and what is left. Who needs much of it must not
 * bring harm to the processes beside it.
 */
#ifndef GP_BASE_MEMORY_H
#define GP_BASE_MEMORY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct memory_now {
	uint64_t own; /* bytes, resident */
	/* Bytes that the kernel could give without swapping: of the machine's, and within the
	 * limits of the control groups that this process is in. */
	uint64_t left;
};

/* The files as /proc/self/statm and /proc/meminfo have them. False: they do not say. */
bool memory_parse(const char *statm, const char *meminfo, uint64_t page_bytes,
		  struct memory_now *ret);

/* Bytes that the control groups leave, by the group with the least: its limit less what is taken,
 * pages of files that it has not used lately apart. `cgroups` is as /proc/self/cgroup; `mount`
 * where the hierarchies are ("/sys/fs/cgroup"): version 2, version 1, or both. Where a group's path
 * is not below it, as in a container, the top counts, which is the container's own. UINT64_MAX: no
 * limit told. Source: the kernel's Documentation/admin-guide/cgroup-v2.rst and
 * cgroup-v1/memory.rst. */
uint64_t memory_group_left(const char *cgroups, const char *mount);

/* Now. False: it is not known. */
bool memory_now(struct memory_now *ret);

/* Bytes that another process could still be given, as of its control groups and the machine.
 * UINT64_MAX: it is not known. */
uint64_t memory_left_of(pid_t pid);

/* If the kernel runs out of memory it is to end this process before all others, from now on, and
 * what it forks: for a process that only reads, and ends. Where that may not be, it stays as it
 * is. */
void memory_end_me_first(void);

#endif /* GP_BASE_MEMORY_H */
