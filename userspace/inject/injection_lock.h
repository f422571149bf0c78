/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Ensures that one gpuprof at a time stops threads of a process. The kernel releases the lock when
 * its holder dies.
 */
#ifndef GP_INJECT_INJECTION_LOCK_H
#define GP_INJECT_INJECTION_LOCK_H

#include "base/reason.h"
#include "inspect/process/process.h"

/* Takes the lock; closing *ret_fd releases it. 0, -EBUSY or another -errno with a reason. */
int injection_lock(const struct target_process *p, struct reason *why, int *ret_fd);

#endif /* GP_INJECT_INJECTION_LOCK_H */
