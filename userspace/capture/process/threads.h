/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The names of a capture's threads, for each of its recordings.
 */
#ifndef GP_CAPTURE_PROCESS_THREADS_H
#define GP_CAPTURE_PROCESS_THREADS_H

#include "base/hash.h"
#include "base/vec.h"
#include "wire.h"

#include <sys/types.h>

struct thread_names {
	struct hash index_of; /* process's serial number << 32 | tid -> index */
	VEC(struct gp_ev_thread) items;
};

/* All zero is an empty one. */
struct threads {
	struct thread_names now;    /* set or looked for since the last threads__poll() */
	struct thread_names before; /* between the last two */
};

/* NULL: not known, or forgotten. Valid to the next call. */
const struct gp_ev_thread *threads__find(struct threads *t, uint32_t process, uint32_t tid);

/* `process`: its serial number. 0 or -ENOMEM. */
int threads__set(struct threads *t, uint32_t process, const struct gp_ev_thread *thread);

/* Sets what /proc says now. 0 or -ENOMEM. */
int threads__look(struct threads *t, uint32_t process, pid_t pid, uint32_t tid, uint64_t now_ns);

/* Forgets those that nobody has asked for since the last turn but one. */
void threads__poll(struct threads *t);

void threads__done(struct threads *t);

#endif /* GP_CAPTURE_PROCESS_THREADS_H */
