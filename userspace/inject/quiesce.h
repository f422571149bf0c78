/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Holds the threads of the target still while something is done to libraries that must not be in
 * use meanwhile. Each thread is stopped where it is outside of them, and stays so until the last
 * one is; then a function is called, and all go on. If one does not come out in time the others
 * go on, and it alone is watched until it does. gpuprof may be killed at any instruction: the
 * kernel lets them go on.
 */
#ifndef GP_INJECT_QUIESCE_H
#define GP_INJECT_QUIESCE_H

#include "base/reason.h"
#include "inject/tracer.h"
#include "inspect/process/process.h"

#include <stdbool.h>
#include <stdint.h>

struct quiesce_options {
	const char *const *libraries; /* how the names of their files begin; NULL ends the list */
	/* Part of the names of their functions that wait for long, and of which a thread may be in
	 * one; NULL ends the list, and none may be if there is no list. */
	const char *const *waiting;
	const char *not_waiting; /* but not of these names; NULL: of all */
	const char *thread_name; /* threads of this name are not held */
	/* About for so long a thread is held at most until the last one is, longer where there are
	 * hundreds of them; for twice as long as that took none is held then. */
	uint32_t window_ms;
	uint32_t search_ms; /* for so long a moment is looked for */
	struct tracer_meanwhile meanwhile;
};

struct quiesce_result {
	uint32_t held_nr, waiting_nr; /* threads; how many of them in a function that waits */
	uint32_t stops;		      /* how often a thread was stopped */
	uint64_t held_ns;	      /* some of them */
	int answer;		      /* what fn returned */
};

/* Called while they are held, in a process of its own (inject/tracer.h): of what it writes, only
 * what it returns and what lies in shared mappings lasts. It has TRACER_SILENCE_MS. `all_out`: none
 * is in a function that waits. */
typedef int (*quiesce_fn)(bool all_out, void *arg);

/* Threads that the libraries have made for themselves run on. ret_result is filled in any case.
 * Returns 0 if fn was called, else -errno with a reason: -EAGAIN no moment was found, -EPERM,
 * -ESRCH and others as for inject_library(). */
int quiesce_threads(const struct target_process *p, const struct quiesce_options *options,
		    quiesce_fn fn, void *arg, struct reason *why,
		    struct quiesce_result *ret_result);

#endif /* GP_INJECT_QUIESCE_H */
