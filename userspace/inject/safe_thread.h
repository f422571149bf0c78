/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Finds a safe thread: one of the process's threads that can run calls for gpuprof now. Stops it.
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

/* What injection knows of the process. */
struct target_view {
	const struct target_process *p;
	struct memory_map map;
	struct c_library c;
	struct tracee memory; /* no thread, only for reads and writes */
	struct unwinder *unwinder;
	const char *never_use; /* never choose threads with this name; NULL: any thread */
};

/* Reads the view; threads called `never_use` (NULL: none) are never chosen. 0 or -errno with a
 * reason. The caller calls target_view__done() either way. */
int target_view__read(const struct target_process *p, const char *never_use, struct reason *why,
		      struct target_view *ret_view);
void target_view__done(struct target_view *v);

/* The chosen thread. */
struct safe_thread {
	struct tracee thread; /* in STOP_INTERRUPT */
	struct user_regs_struct registers;
	uint64_t place;	      /* for remote_begin() */
	unsigned char *saved; /* what the caller replaces there, from malloc */
	uint32_t stops;
	struct tracees late;
};

/* Stops one thread after the other until one is at a safe point. 0; or -EAGAIN, -EPERM, -ESRCH or
 * another -errno with a reason, and all threads run again. The caller calls safe_thread__done()
 * either way, after it has released the thread. */
int safe_thread_take(struct target_view *v, uint64_t deadline_ns, struct reason *why,
		     struct safe_thread *ret_thread);
void safe_thread__done(struct safe_thread *b);

/* Whether any thread may still run code in [start, end). Stops each thread for a moment. */
bool any_thread_is_in(struct target_view *v, uint64_t start, uint64_t end);

#endif /* GP_INJECT_SAFE_THREAD_H */
