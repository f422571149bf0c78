/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What this process's own system call filters do, found by making calls in a child. Only a tracer
 * with CAP_SYS_ADMIN and no filter of its own may read another's filters, which is nobody in a
 * container; but there the runtime gives every process the same.
 */
#ifndef GP_INJECT_SECCOMP_TRIAL_H
#define GP_INJECT_SECCOMP_TRIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct target_process;

/* Whether thread `tid` of the process has this process's filters, as far as can be known: both are
 * in the same container (a PID namespace that is not the machine's first), with as many filters. */
bool seccomp_trial_fits(const struct target_process *p, int tid);

#define SECCOMP_TRIAL_MAX 256

/* Makes each system call in a child, so that it does nothing. ret_actions[i] is SECCOMP_RET_ALLOW,
 * _ERRNO, or _KILL_PROCESS where the child ended. At most SECCOMP_TRIAL_MAX
 * of them. Returns 0 or -errno. */
int seccomp_trial(const uint32_t *numbers, size_t nr, uint32_t *ret_actions);

#endif /* GP_INJECT_SECCOMP_TRIAL_H */
