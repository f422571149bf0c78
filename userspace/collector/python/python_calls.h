/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The Python calls that the calling thread is in, so that the calls around one op can be compared
 * with those around the next. While a call goes on, its frame keeps its address, and the frames
 * around it wait: they neither move on nor change their variables. Two calls of one function in a
 * row look like one if nothing of that differs: calls from one place in a module's own code, whose
 * variables belong to no frame, and calls from a loop that changes no variable.
 */
#ifndef GP_COLLECTOR_PYTHON_PYTHON_CALLS_H
#define GP_COLLECTOR_PYTHON_PYTHON_CALLS_H

#include "collector/python/python.h"

#include <stdbool.h>
#include <stdint.h>

struct python_call {
	uint64_t frame;	 /* its address */
	uint64_t code;	 /* the address of its code object */
	uint64_t around; /* hash of where it waits and of its variables; 0: the innermost */
};

/* All calls of a thread: `nr` of them, inwards from calls[at]. */
struct python_calls {
	uint32_t at, nr;
	struct python_call calls[GP_STACK_FRAMES];
};

/* Walks outwards from a frame. `nr` is 0 if there are too many frames. False: one cannot be read.
 */
bool python_calls(const struct gp_python *py, uint64_t frame, enum python_reads reads,
		  struct python_calls *ret_calls);

/* The number of calls, from the outermost on, that both have. */
uint32_t python_calls_same(const struct python_calls *a, const struct python_calls *b);

/* Whether two walks found the same. */
bool python_calls_equal(const struct python_calls *a, const struct python_calls *b);

#endif /* GP_COLLECTOR_PYTHON_PYTHON_CALLS_H */
