/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Reading another process's memory while it runs. What comes back is what the process made of it:
 * it may change between two reads.
 */
#ifndef GP_INSPECT_ACCESS_MEMORY_H
#define GP_INSPECT_ACCESS_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Copies exactly `bytes` bytes at `address`. 0, -EFAULT if not all of them are there, or another
 * -errno (-ESRCH, -EPERM). */
int target_memory_read(pid_t pid, uint64_t address, void *to, size_t bytes);

#endif /* GP_INSPECT_ACCESS_MEMORY_H */
