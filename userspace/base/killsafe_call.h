/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * For what must not be cut short. Where a thread has a SIGKILL pending, Linux may not touch the
 * pages of another process for it: of the uprobes that it sets or takes away just then some stay in
 * place for good (seen on Linux 6.18, which tells of a "leaking uprobe").
 */
#ifndef GP_BASE_KILLSAFE_CALL_H
#define GP_BASE_KILLSAFE_CALL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

/*
 * Calls fn(arg) in a process that has our memory and our descriptors, heeds no signal, and is found
 * by none of ours but where a whole control group or all of a name is meant; waits for it. A kill
 * -9 of ours finds it at work: it goes on to the end of fn() and closes what is open then. fn() may
 * make system calls and no more: a lock that another thread holds as we are killed is never let go
 * of. Returns what fn() does, or -ECANCELED if that process was ended itself; fn() is called
 * directly where there can be no such process.
 */
int killsafe_call(int (*fn)(void *arg), void *arg);

/* In fn(): whether nobody waits for it any more, so that all it can do is to end. */
bool killsafe_is_child(void);

/* CPU time of this process and all such processes so far, in ns: no clock has both. Any thread. */
uint64_t killsafe_cpu_ns(void);

/* Adds to it what another child of this process took, once that has been waited for. Any thread. */
void killsafe_add_cpu(const struct rusage *usage);

#endif /* GP_BASE_KILLSAFE_CALL_H */
