/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Finds out what gpuprof's own seccomp filters do, by making system calls in a child. Reading
 * another process's filters takes a tracer with CAP_SYS_ADMIN and no filter of its own, which no
 * process in a container is; but there the runtime gives every process the same filters.
 */
#ifndef GP_INJECT_SECCOMP_TRIAL_H
#define GP_INJECT_SECCOMP_TRIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct target_process;

/* Whether the thread seems to have gpuprof's filters: both are in one container (a PID namespace
 * that is not the machine's first) and have the same number of filters. */
bool seccomp_trial_fits(const struct target_process *p, int tid);

#define SECCOMP_TRIAL_MAX 256

/* Makes each system call in a child, with arguments that have no effect. ret_actions[i] is
 * SECCOMP_RET_ALLOW, _ERRNO, or _KILL_PROCESS if the call ended the child. At most
 * SECCOMP_TRIAL_MAX calls. 0 or -errno. */
int seccomp_trial(const uint32_t *numbers, size_t nr, uint32_t *ret_actions);

#endif /* GP_INJECT_SECCOMP_TRIAL_H */
