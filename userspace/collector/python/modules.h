/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * GP_FEATURE_MODULES: the nn.Module calls that a thread is in, followed from op to op. A call is
 * written to the ring (GP_EV_MODULE_CALL) once it is over. The thread itself writes it, or the
 * collector's thread while no callback runs.
 */
#ifndef GP_COLLECTOR_PYTHON_MODULES_H
#define GP_COLLECTOR_PYTHON_MODULES_H

#include "collector/python/python_modules.h"
#include "collector/runtime/ring_writer.h"

#include <stdint.h>

struct module_call {
	uint64_t frame, call; /* as in struct python_module */
	uint64_t object;
	/* The start of its first op, and the end of its last one so far; 0: none. */
	uint64_t start_ns, end_ns;
	uint64_t first, last; /* instances of its first and last op */
	uint32_t name_id;
	uint32_t reserved;
};

/* A thread's state; all zero at first. */
struct thread_modules {
	struct python_modules found; /* calls found by the last walk */
	uint32_t nr;		     /* of open[] */
	uint32_t tid;		     /* the thread's */
	uint32_t epoch;		     /* the arming that the calls belong to */
	uint32_t reserved;
	struct module_call open[GP_MODULE_DEPTH]; /* outermost first */
};

/* Ends the open calls that the last walk did not find, and writes them to the ring. Returns how
 * many stay open. */
uint32_t modules__keep(struct thread_modules *m, struct ring_writer *w);
/* Ends all open calls but the first `nr`. */
void modules__cut(struct thread_modules *m, struct ring_writer *w, uint32_t nr);
/* Ends all open calls, or drops them if they belong to another arming. */
void modules__leave(struct thread_modules *m, struct ring_writer *w, uint32_t epoch);
/* Opens one more call that the walk found. `name_id` names its type. There is always room. */
void modules__open(struct thread_modules *m, const struct python_module *found, uint32_t name_id);

/* An op begins inside all open calls. */
void modules__begin(struct thread_modules *m, uint64_t instance, uint64_t start_ns);
/* An op ends that began inside the first `nr` calls. */
void modules__end(struct thread_modules *m, uint32_t nr, uint64_t end_ns);

#endif /* GP_COLLECTOR_PYTHON_MODULES_H */
