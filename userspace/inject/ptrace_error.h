/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Why the kernel does not let us at a process, in words with the next step.
 */
#ifndef GP_INJECT_PTRACE_ERROR_H
#define GP_INJECT_PTRACE_ERROR_H

#include "base/reason.h"

#include <sys/types.h>

/* For an error of ptrace or of opening /proc/PID/mem. Returns -EPERM, or -ESRCH for a process that
 * is gone. */
int ptrace_error_reason(pid_t pid, int err, struct reason *why);

/* The process that traces the thread; 0: none, or none that we can see. */
pid_t tracer_of(pid_t tid);

#endif /* GP_INJECT_PTRACE_ERROR_H */
