/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Holds the process's threads while something is done to libraries that must not be in use. Each
 * thread is stopped outside of them and held until the last one is; then a function is called, and
 * all continue. If one thread does not leave in time, the others continue and it alone is watched
 * until it does. gpuprof may be killed at any instruction: the kernel continues the threads.
 */
#ifndef GP_INJECT_QUIESCE_H
#define GP_INJECT_QUIESCE_H

#include "base/reason.h"
#include "inject/tracer.h"
#include "inspect/process/process.h"

#include <stdbool.h>
#include <stdint.h>

struct quiesce_options {
	const char *const *libraries; /* prefixes of their file names; NULL ends the list */
	/* Name parts of their functions that wait for long, in which a thread may be held; NULL
	 * ends the list, and a NULL list allows none. */
	const char *const *waiting;
	const char *not_waiting; /* but not these names; NULL: no exceptions */
	const char *thread_name; /* threads with this name are not held */
	/* The longest time that a thread is held until the last one is, longer if there are
	 * hundreds of threads. After a failed try no thread is held for twice the time it took. */
	uint32_t window_ms;
	uint32_t search_ms; /* how long to search for such a moment */
	struct tracer_meanwhile meanwhile;
};

struct quiesce_result {
	uint32_t held_nr, waiting_nr; /* threads held; how many of them in a waiting function */
	uint32_t stops;		      /* how often threads were stopped */
	uint64_t held_ns;	      /* some of them */
	int answer;		      /* fn's result */
};

/* Called while the threads are held, in a process of its own (inject/tracer.h): only its result and
 * what it writes to shared mappings last. It has TRACER_SILENCE_MS. `all_out`: no thread is in a
 * waiting function. */
typedef int (*quiesce_fn)(bool all_out, void *arg);

/* Holds the threads and calls fn. The libraries' own threads run on. Fills in ret_result in any
 * case. 0 if fn was called, else -errno with a reason: -EAGAIN no moment was found, -EPERM, -ESRCH
 * and others as for inject_library(). */
int quiesce_threads(const struct target_process *p, const struct quiesce_options *options,
		    quiesce_fn fn, void *arg, struct reason *why,
		    struct quiesce_result *ret_result);

#endif /* GP_INJECT_QUIESCE_H */
