/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * One gpuprof at a time stops threads of a process: the kernel gives the turn up when its holder
 * dies.
 */
#ifndef GP_INJECT_INJECTION_LOCK_H
#define GP_INJECT_INJECTION_LOCK_H

#include "base/reason.h"
#include "inspect/process/process.h"

/* *ret_fd is to be closed at the end of the turn. 0, -EBUSY or another -errno with a reason. */
int injection_lock(const struct target_process *p, struct reason *why, int *ret_fd);

#endif /* GP_INJECT_INJECTION_LOCK_H */
