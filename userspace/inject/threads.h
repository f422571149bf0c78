/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What /proc says of the target's threads. All of it may have changed by the time it is read.
 */
#ifndef GP_INJECT_THREADS_H
#define GP_INJECT_THREADS_H

#include "base/vec.h"

#include <stdbool.h>
#include <sys/types.h>

struct thread_ids {
	VEC(pid_t) ids;
};

/* For CLEANUP. */
static inline void cleanup_thread_ids(struct thread_ids *list)
{
	vec_done(&list->ids);
}

/* The threads that there are. 0, -ESRCH or -ENOMEM; the caller frees with vec_done(). */
int threads_list(pid_t pid, struct thread_ids *ret_list);

/* The state letter of a thread, 0 if it is gone. */
char thread_state(pid_t pid, pid_t tid);

/* Whether it has that name. */
bool thread_is_called(pid_t pid, pid_t tid, const char *name);

#endif /* GP_INJECT_THREADS_H */
