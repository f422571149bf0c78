/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Walking the Python frames of the calling thread. While a thread is inside C code, with or without
 * the GIL, nobody changes its frames or frees the code objects they run, so plain loads are safe.
 * There are two exceptions: an interpreter that is shutting down may free the thread state of a
 * thread that still runs, and a wrong layout may lead anywhere. For those there are checked reads,
 * which the kernel does.
 */
#ifndef GP_COLLECTOR_PYTHON_PYTHON_H
#define GP_COLLECTOR_PYTHON_PYTHON_H

#include "wire.h"

#include <stdbool.h>
#include <stdint.h>

struct python_api {
	struct gp_python layout;
	void *library;		     /* handle, held while the functions are in use */
	void *(*thread_state)(void); /* the calling thread's; NULL: it runs no Python */
	int (*is_finalizing)(void);
};

/* Finds the interpreter's functions in this process and validates the layout. NULL, or why stacks
 * cannot be walked. */
const char *python_api__bind(struct python_api *p, const struct gp_python *layout);
/* Releases the library. Fine when not bound. */
void python_api__release(struct python_api *p);

/* Whether every offset lies within the bytes that are read of its structure. The layout comes from
 * the ring's page, which the process may overwrite. */
bool python_layout_is_sane(const struct gp_python *py);

/* Whether checked reads work in this process. A seccomp filter may forbid them at any time. */
bool python_can_check(void);

enum python_reads { PYTHON_PLAIN = 0, PYTHON_CHECKED = 1 };

/* Whether the thread state belongs to the thread `self` (pthread_self()) and is in its
 * interpreter's list. Uses checked reads. */
bool python_state_is_good(const struct gp_python *py, uint64_t state, uint64_t self);
/* Whether the thread has no other thread state. With several interpreters it may have one in each,
 * and only one of them is current. Uses plain reads unless there are several interpreters. */
bool python_state_is_only(const struct gp_python *py, uint64_t state, uint64_t self);
/* The thread state's interpreter if it is the only one, else 0. Uses plain reads. */
uint64_t python_only_interpreter(const struct gp_python *py, uint64_t state);

/* Finds the innermost frame; 0: the thread runs no Python now. False: it cannot be read. */
bool python_first_frame(const struct gp_python *py, uint64_t state, enum python_reads reads,
			uint64_t *ret_frame);

struct python_stack {
	uint64_t hash; /* of all that follows */
	uint32_t nr;
	uint32_t flags; /* enum gp_stack_flags */
	struct gp_stack_frame frames[GP_STACK_FRAMES];
};

/* Walks outwards from a frame. False: a frame could not be read; ret_stack has the frames inside
 * of it and is marked incomplete. */
bool python_walk(const struct gp_python *py, uint64_t frame, enum python_reads reads,
		 struct python_stack *ret_stack);

#endif /* GP_COLLECTOR_PYTHON_PYTHON_H */
