/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The Python frames of the calling thread, read where they lie. While the thread is inside C code,
 * with the GIL or without, nobody changes its frames or frees the code that they run, so plain
 * loads do. Only an interpreter that is being taken down may free the thread state of a thread that
 * still runs, and a wrong layout would lead anywhere: then reads are checked, by the kernel.
 */
#ifndef GP_COLLECTOR_PYTHON_PYTHON_H
#define GP_COLLECTOR_PYTHON_PYTHON_H

#include "wire.h"

#include <stdbool.h>
#include <stdint.h>

struct python_api {
	struct gp_python layout;
	void *library;		     /* held while the functions are in use */
	void *(*thread_state)(void); /* the calling thread's, NULL: it runs no Python */
	int (*is_finalizing)(void);
};

/* Finds the interpreter's functions in this process and looks at the layout. NULL, or why stacks
 * cannot be walked. */
const char *python_api__bind(struct python_api *p, const struct gp_python *layout);
/* Lets go of the library. Fine when not bound. */
void python_api__release(struct python_api *p);

/* Whether every offset lies in what is read of its structure: the page that the layout comes from
 * may be scribbled on. */
bool python_layout_is_sane(const struct gp_python *py);

/* Whether the kernel does checked reads for this process; a filter may forbid them at any time. */
bool python_can_check(void);

enum python_reads { PYTHON_PLAIN = 0, PYTHON_CHECKED = 1 };

/* Whether the thread state is that of the thread `self` (pthread_self()) and in its interpreter's
 * list. Checked reads. */
bool python_state_is_good(const struct gp_python *py, uint64_t state, uint64_t self);
/* Whether it is the only one in the process that is this thread's: of several interpreters' states
 * only one is the thread's now. Plain reads unless there are several interpreters. */
bool python_state_is_only(const struct gp_python *py, uint64_t state, uint64_t self);
/* The interpreter of the thread state if there is no other, else 0. Plain reads. */
uint64_t python_only_interpreter(const struct gp_python *py, uint64_t state);

/* The innermost frame, 0: the thread runs no Python now. False: it cannot be read. */
bool python_first_frame(const struct gp_python *py, uint64_t state, enum python_reads reads,
			uint64_t *ret_frame);

struct python_stack {
	uint64_t hash; /* of all that follows */
	uint32_t nr;
	uint32_t flags; /* enum gp_stack_flags */
	struct gp_stack_frame frames[GP_STACK_FRAMES];
};

/* Walks from a frame outwards. False: something could not be read; what lies further in is in
 * ret_stack, marked as incomplete. */
bool python_walk(const struct gp_python *py, uint64_t frame, enum python_reads reads,
		 struct python_stack *ret_stack);

#endif /* GP_COLLECTOR_PYTHON_PYTHON_H */
