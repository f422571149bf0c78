/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Lists processes and finds those that can be profiled.
 */
#ifndef GP_INSPECT_PROCESS_SCAN_H
#define GP_INSPECT_PROCESS_SCAN_H

#include "inspect/process/process.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Lists the ids of all processes in /proc, sorted; the caller frees. 0 or -errno. */
int target_scan(pid_t **ret_pids, size_t *ret_nr);

/* Lists the living children that this process's threads have forked, sorted; the caller frees. A
 * vfork child before its exec lives in its parent's memory and is left out. 0 or -errno. */
int target_scan_children(pid_t pid, pid_t **ret_pids, size_t *ret_nr);

/* Whether the process has PyTorch or CUDA mapped, by library names; false in a sandbox (see
 * target_process__sandbox()). */
bool target_process__is_profilable(const struct target_process *p);

/* Whether a mapped file, such as a static executable, defines PyTorch's operators, whatever its
 * name. Reads all symbols. */
bool target_process__has_operators(const struct target_process *p);

/* Returns the sandbox that the process is a part of, whose programs the kernel does not see
 * ("gVisor"), or NULL. The string is static. */
const char *target_process__sandbox(const struct target_process *p);

/* Whether the shell pattern matches some part of the process's command line. */
bool target_process__is_named(const struct target_process *p, const char *pattern);

/* Whether the process is in this control group or below it. `path` is as in /proc/PID/cgroup, or
 * with /sys/fs/cgroup in front. */
bool target_process__is_in_cgroup(const struct target_process *p, const char *path);

#endif /* GP_INSPECT_PROCESS_SCAN_H */
