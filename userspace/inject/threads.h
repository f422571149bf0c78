/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Lists the process's threads from /proc. The answers may be out of date at once.
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

/* Lists the threads' ids. 0, -ESRCH or -ENOMEM; the caller frees with vec_done(). */
int threads_list(pid_t pid, struct thread_ids *ret_list);

/* Returns the thread's state letter; 0 if it is gone. */
char thread_state(pid_t pid, pid_t tid);

/* Whether the thread has this name. */
bool thread_is_called(pid_t pid, pid_t tid, const char *name);

#endif /* GP_INJECT_THREADS_H */
