/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * For what must not be cut short. Where a thread has a SIGKILL pending, Linux may not touch the
 * pages of another process for it: of the uprobes that it sets or takes away just then some stay in
 * place for good (seen on Linux 6.18, which tells of a "leaking uprobe").
 */
#ifndef GP_BASE_SHIELD_H
#define GP_BASE_SHIELD_H

/* Calls fn(arg) in a process that has our memory and our descriptors but gets none of our signals,
 * and waits for it: a kill -9 of ours finds it at work, and it goes on to the end of fn() and
 * closes what is open then. Returns what fn() does, whose errno is the caller's. fn() is called
 * directly where there can be no such process. */
int shield_run(int (*fn)(void *arg), void *arg);

#endif /* GP_BASE_SHIELD_H */
