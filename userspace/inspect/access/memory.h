/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Reads another process's memory while it runs, so two reads may differ and nothing in it can be
 * trusted.
 */
#ifndef GP_INSPECT_ACCESS_MEMORY_H
#define GP_INSPECT_ACCESS_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Copies exactly `bytes` bytes from `address`. 0, -EFAULT if not all of them are mapped, or another
 * -errno (-ESRCH, -EPERM). */
int target_memory_read(pid_t pid, uint64_t address, void *to, size_t bytes);

#endif /* GP_INSPECT_ACCESS_MEMORY_H */
