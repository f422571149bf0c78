/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Explains why the kernel refuses access to a process, with the next step.
 */
#ifndef GP_INJECT_PTRACE_ERROR_H
#define GP_INJECT_PTRACE_ERROR_H

#include "base/reason.h"

#include <sys/types.h>

/* Sets the reason for an error of ptrace or of opening /proc/PID/mem. Returns -EPERM, or -ESRCH if
 * the process is gone. */
int ptrace_error_reason(pid_t pid, int err, struct reason *why);

/* Returns the thread's tracer; 0: it has none that we can see. */
pid_t tracer_of(pid_t tid);

#endif /* GP_INJECT_PTRACE_ERROR_H */
