/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Which processes there are.
 */
#ifndef GP_INSPECT_PROCESS_SCAN_H
#define GP_INSPECT_PROCESS_SCAN_H

#include "inspect/process/process.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The ids of all processes that /proc shows, sorted; the caller frees. 0 or -errno. */
int target_scan(pid_t **ret_pids, size_t *ret_nr);

/* The processes that this one's threads have forked and that are still there, sorted; the caller
 * frees. A child by vfork that has not called exec lives in its parent's memory and is not among
 * them. 0 or -errno. */
int target_scan_children(pid_t pid, pid_t **ret_pids, size_t *ret_nr);

/* Whether PyTorch or CUDA is mapped in the process, by the names of its libraries; never so in a
 * sandbox (see target_process__sandbox()). */
bool target_process__is_profilable(const struct target_process *p);

/* Whether a file that is mapped in the process, its executable say, defines PyTorch's operators,
 * whatever its name is. Reads all their symbols. */
bool target_process__has_operators(const struct target_process *p);

/* The sandbox that the process is a part of, whose programs the kernel does not see ("gVisor"), or
 * NULL. The string is static. */
const char *target_process__sandbox(const struct target_process *p);

/* Whether the pattern (a shell's) is somewhere in the process's command line. */
bool target_process__is_named(const struct target_process *p, const char *pattern);

/* Whether the process is in this control group or one below it. `path` is as /proc/PID/cgroup has
 * it, or with /sys/fs/cgroup before it. */
bool target_process__is_in_cgroup(const struct target_process *p, const char *path);

#endif /* GP_INSPECT_PROCESS_SCAN_H */
