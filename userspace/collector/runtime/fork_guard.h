/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Keeps forks away while our thread uses PyTorch's list of callbacks or the loader's list of
 * libraries, which have locks. A child that is forked while our thread holds such a lock finds it
 * locked for ever, and hangs in its first operator or as it loads a library.
 */
#ifndef GP_COLLECTOR_RUNTIME_FORK_GUARD_H
#define GP_COLLECTOR_RUNTIME_FORK_GUARD_H

/* No fork begins between the two, unless it has waited for two seconds. Calls may be nested. The
 * first waits for a fork that is going on, for two seconds at most. */
void fork_guard__hold(void);
void fork_guard__release(void);

/* Resets the lock in a fork's child, where its owner does not exist. */
void fork_guard__forget(void);

#endif /* GP_COLLECTOR_RUNTIME_FORK_GUARD_H */
