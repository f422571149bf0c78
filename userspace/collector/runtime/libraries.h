/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The libraries that this process has loaded.
 */
#ifndef GP_COLLECTOR_RUNTIME_LIBRARIES_H
#define GP_COLLECTOR_RUNTIME_LIBRARIES_H

#include <link.h>
#include <stddef.h>

/* Calls dl_iterate_phdr() while no fork can begin. glibc (2.36) does not reset the lock of that
 * function in a fork's child, which would hang as it loads its next library. */
int libraries__each(int (*fn)(struct dl_phdr_info *info, size_t bytes, void *arg), void *arg);

#endif /* GP_COLLECTOR_RUNTIME_LIBRARIES_H */
