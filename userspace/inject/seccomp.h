/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What a thread's system call filters would do to the calls that injection makes: the filters are
 * read and evaluated, never tried out on the target. Where they may not be read and gpuprof has the
 * same ones, they are tried out on a child of gpuprof's.
 */
#ifndef GP_INJECT_SECCOMP_H
#define GP_INJECT_SECCOMP_H

#include "base/reason.h"

#include <linux/filter.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct target_process;

/* The most severe action (SECCOMP_RET_*, without data) that the filter can take on this x86-64
 * system call with whatever arguments. SECCOMP_RET_KILL_PROCESS for a filter that is malformed or
 * has too many branches to tell. */
uint32_t seccomp_worst_action(const struct sock_filter *filter, size_t nr, uint32_t number);

/* For a stopped tracee, thread `tid` of the process: 0 if all calls that injection and the
 * library make are allowed or refused with an errno that they handle; else -EPERM with a reason. */
int seccomp_check(const struct target_process *p, pid_t tid, struct reason *why);

/* The same for what it takes beside to make a file in a folder and to take its name away. */
int seccomp_check_files(const struct target_process *p, pid_t tid, struct reason *why);

#endif /* GP_INJECT_SECCOMP_H */
