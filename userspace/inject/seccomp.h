/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Predicts what a thread's seccomp filters do to the system calls that injection makes. The filters
 * are read and evaluated, never tried on the process. If they cannot be read and gpuprof has the
 * same ones, they are tried on a child of gpuprof.
 */
#ifndef GP_INJECT_SECCOMP_H
#define GP_INJECT_SECCOMP_H

#include "base/reason.h"

#include <linux/filter.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct target_process;

/* Returns the most severe action (SECCOMP_RET_*, without data) that the filter can take on this
 * x86-64 system call with any arguments. SECCOMP_RET_KILL_PROCESS for a filter that is malformed or
 * has too many branches to evaluate. */
uint32_t seccomp_worst_action(const struct sock_filter *filter, size_t nr, uint32_t number);

/* Checks a stopped thread: 0 if its filters allow all calls that injection and the collector make,
 * or refuse them with an errno that both handle; else -EPERM with a reason. */
int seccomp_check(const struct target_process *p, pid_t tid, struct reason *why);

/* Checks the additional calls that creating and unlinking a file in a folder takes. */
int seccomp_check_files(const struct target_process *p, pid_t tid, struct reason *why);

#endif /* GP_INJECT_SECCOMP_H */
