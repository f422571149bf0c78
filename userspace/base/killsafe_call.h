/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Runs work that a SIGKILL must not cut short. While a thread has a SIGKILL pending, Linux cannot
 * touch the pages of another process on its behalf: some of the uprobes that it is setting or
 * removing then stay in place for good (seen on Linux 6.18, which logs a "leaking uprobe").
 */
#ifndef GP_BASE_KILLSAFE_CALL_H
#define GP_BASE_KILLSAFE_CALL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

/*
 * Calls fn(arg) in a child process and waits for it. The child shares our memory and descriptors
 * and ignores all signals; a kill that names a whole control group or a program's name can still
 * reach it. If gpuprof is killed with SIGKILL, the child finishes fn() and then closes the
 * descriptors. fn() may only make system calls: a lock that another thread holds when gpuprof is
 * killed is never released. Returns fn()'s result, or -ECANCELED if the child was killed. Where no
 * child can be created, fn() is called directly.
 */
int killsafe_call(int (*fn)(void *arg), void *arg);

/* Inside fn(): whether gpuprof has died, so that fn() should only finish. */
bool killsafe_is_child(void);

/* Returns the CPU time of this process and all those children so far, in ns; no clock covers both.
 * Any thread. */
uint64_t killsafe_cpu_ns(void);

/* Adds the CPU time of another child that has been waited for. Any thread. */
void killsafe_add_cpu(const struct rusage *usage);

#endif /* GP_BASE_KILLSAFE_CALL_H */
