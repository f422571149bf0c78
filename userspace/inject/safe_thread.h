/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Finds a thread of the target that can be borrowed now, and stops it.
 */
#ifndef GP_INJECT_SAFE_THREAD_H
#define GP_INJECT_SAFE_THREAD_H

#include "base/reason.h"
#include "base/vec.h"
#include "inject/c_library.h"
#include "inject/memory_map.h"
#include "inject/remote.h"
#include "inject/tracee.h"
#include "inject/unwind.h"
#include "inspect/process/process.h"

/* The target as injection sees it. */
struct target_view {
	const struct target_process *p;
	struct memory_map map;
	struct c_library c;
	struct tracee memory; /* no thread: only reads and writes */
	struct unwinder *unwinder;
	const char *not_borrowed; /* threads of this name, NULL: none */
};

/* Reads it, for borrowing other threads than those called `not_borrowed` (NULL: none); -errno with
 * a reason. The caller calls target_view__done() either way. */
int target_view__read(const struct target_process *p, const char *not_borrowed, struct reason *why,
		      struct target_view *ret_view);
void target_view__done(struct target_view *v);

/* A thread that was stopped and had not stopped yet when the time for it was over. */
struct safe_thread {
	struct tracee thread; /* in STOP_INTERRUPT */
	struct user_regs_struct registers;
	uint64_t place;	      /* for remote_begin() */
	unsigned char *saved; /* what was there, from malloc */
	uint32_t stops;
	struct tracees late;
};

/* Stops threads one after the other until one is at a safe point. 0; -EAGAIN, -EPERM, -ESRCH or
 * another -errno with a reason, all threads let go then. The caller calls safe_thread__done()
 * either way, after the thread was let go. */
int safe_thread_take(struct target_view *v, uint64_t deadline_ns, struct reason *why,
		     struct safe_thread *ret_thread);
void safe_thread__done(struct safe_thread *b);

/* Whether any thread may still run code in [start, end). Stops all of them, one at a time. */
bool any_thread_is_in(struct target_view *v, uint64_t start, uint64_t end);

#endif /* GP_INJECT_SAFE_THREAD_H */
