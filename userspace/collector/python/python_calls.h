/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Which Python calls the calling thread is in, so that the calls around one op can be told from
 * those around the next. While a call goes on its frame stays where it is, and the frames around it
 * wait: neither do they get on, nor do their variables change. Calls of one function one after the
 * other that differ in nothing of that look like one: those from a module's own code, whose
 * variables are no frame's, at one place; and from a loop that changes no variable.
 */
#ifndef GP_COLLECTOR_PYTHON_PYTHON_CALLS_H
#define GP_COLLECTOR_PYTHON_PYTHON_CALLS_H

#include "collector/python/python.h"

#include <stdbool.h>
#include <stdint.h>

struct python_call {
	uint64_t frame;	 /* its address */
	uint64_t code;	 /* what it runs */
	uint64_t around; /* hash of where it waits, and of its variables; 0: the innermost */
};

/* All of a thread: calls[at] is the outermost, nr follow one another inwards. */
struct python_calls {
	uint32_t at, nr;
	struct python_call calls[GP_STACK_FRAMES];
};

/* Walks from a frame outwards; nr is 0 if there are too many frames. False: something could not be
 * read. */
bool python_calls(const struct gp_python *py, uint64_t frame, enum python_reads reads,
		  struct python_calls *ret_calls);

/* How many calls, from the outermost on, are the same ones in both. */
uint32_t python_calls_same(const struct python_calls *a, const struct python_calls *b);

/* Whether two walks found the same. */
bool python_calls_equal(const struct python_calls *a, const struct python_calls *b);

#endif /* GP_COLLECTOR_PYTHON_PYTHON_CALLS_H */
