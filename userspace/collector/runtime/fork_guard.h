/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Keeps forks apart from what our thread does with PyTorch's list of callbacks and the loader's
 * list of libraries, which have locks: a child that is born while our thread holds one would find
 * it locked for ever, and hang in its first operator, or as it loads a library.
 */
#ifndef GP_COLLECTOR_RUNTIME_FORK_GUARD_H
#define GP_COLLECTOR_RUNTIME_FORK_GUARD_H

/* Between the two no fork begins, but for one that was not willing to wait any longer. They may be
 * nested. The first waits for a fork that is under way, which is short, but not for ever. */
void fork_guard__hold(void);
void fork_guard__release(void);

/* In a fork's child: whoever held it is not here. */
void fork_guard__forget(void);

#endif /* GP_COLLECTOR_RUNTIME_FORK_GUARD_H */
