/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * GP_FEATURE_MODULES: the calls of nn.Modules that a thread is in, followed from op to op and
 * written to the ring (GP_EV_MODULE_CALL) once they are over. Written by the thread itself, or by
 * the collector's when no callback is at work.
 */
#ifndef GP_COLLECTOR_PYTHON_MODULES_H
#define GP_COLLECTOR_PYTHON_MODULES_H

#include "collector/python/python_modules.h"
#include "collector/runtime/ring_writer.h"

#include <stdint.h>

struct module_call {
	uint64_t frame, call; /* as in struct python_module */
	uint64_t object;
	uint64_t start_ns, end_ns; /* of the first op in it, of the last that has ended; 0: none */
	uint64_t first, last;	   /* instances of ops in it */
	uint32_t name_id;
	uint32_t reserved;
};

/* What is kept for a thread; all zero at first. */
struct thread_modules {
	struct python_modules found; /* by the last walk */
	uint32_t nr;		     /* of open[] */
	uint32_t tid;		     /* whose they are */
	uint32_t epoch;		     /* of the arming that they belong to */
	uint32_t reserved;
	struct module_call open[GP_MODULE_DEPTH]; /* outermost first */
};

/* How many of the calls that are open are among those found; the others are over and go into the
 * ring. */
uint32_t modules__keep(struct thread_modules *m, struct ring_writer *w);
/* Goes on with the first `nr` alone; the others are over. */
void modules__cut(struct thread_modules *m, struct ring_writer *w, uint32_t nr);
/* All of them are over, if they are of this arming; there are none afterwards. */
void modules__leave(struct thread_modules *m, struct ring_writer *w, uint32_t epoch);
/* Opens one more, a call that was found; there is room for all. `name_id` is its type's. */
void modules__open(struct thread_modules *m, const struct python_module *found, uint32_t name_id);

/* An op begins in what is open. */
void modules__begin(struct thread_modules *m, uint64_t instance, uint64_t start_ns);
/* An op ends that began in the first `nr` calls. */
void modules__end(struct thread_modules *m, uint32_t nr, uint64_t end_ns);

#endif /* GP_COLLECTOR_PYTHON_MODULES_H */
