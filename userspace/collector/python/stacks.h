/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Python stacks of ops and the ids that stand for them in the ring. Append-only, without locks,
 * like the names: announced in the ring (GP_EV_STACK) before an id is given out. Stacks are told
 * apart by a 64-bit hash.
 */
#ifndef GP_COLLECTOR_PYTHON_STACKS_H
#define GP_COLLECTOR_PYTHON_STACKS_H

#include "collector/python/python.h"
#include "collector/python/python_calls.h"
#include "collector/python/python_modules.h"
#include "collector/runtime/ring_writer.h"

#include <stdbool.h>
#include <stdint.h>

struct stacks;

/* What an op began under. */
struct op_stack {
	uint64_t frame; /* address of the innermost frame, 0: none */
	uint64_t state; /* the thread state that has it */
	uint64_t
		interp; /* the only interpreter, 0: there are several, or all of this is doubtful */
	uint32_t id;	/* 0: none */
	uint32_t flags; /* enum gp_stack_flags */
};

/* What is kept for a thread; `state` and `checks_nr` are zero at first. */
struct thread_stack {
	uint64_t state;	    /* its Python thread state, as last seen to be good */
	uint32_t checks_nr; /* walks that were done both ways */
	uint32_t reserved;
	/* Here, not on the thread's C stack, of which there may be little left. */
	struct python_stack walked, again;
	/* The calls that its last op began in, as far as they are known, lie in calls[calls_now].
	 */
	struct python_calls calls[2], calls_again;
	uint32_t calls_now;
	uint32_t calls_checks_nr; /* as checks_nr; zero at first */
};

/* `ids` false: stacks get none, because calls of modules alone are wanted. NULL, and why in
 * *why_text. */
struct stacks *stacks__new(const struct gp_python *layout, bool ids, const char **why_text);
/* Lets go of Python's library. Afterwards only stacks__resume() and stacks__free(). NULL is fine.
 */
void stacks__release(struct stacks *k);
/* Takes stacks again: ids go on, and those that were given out stand for what they stood for. NULL,
 * or why not: it is as it was. */
const char *stacks__resume(struct stacks *k, const struct gp_python *layout, bool ids);
/* After either: Python's calls are wanted too, for which stacks need ids; see stacks__calls(). */
void stacks__want_calls(struct stacks *k);
void stacks__free(struct stacks *k);

/*
 * The calling thread's stack; only on a thread that is inside C code. `outer` is the stack of an op
 * whose call has not returned and which lies on this thread's C stack, NULL: there is none. If the
 * innermost frame is still the one under which that op began, it waits in that very call, and the
 * stack is the same. What is missing or not whole is counted in w. `modules`, if not NULL, gets the
 * calls of modules that the thread is in, none if they are not known; it is left alone where the
 * stack is that of `outer`.
 */
struct op_stack stacks__take(struct stacks *k, struct ring_writer *w, struct thread_stack *t,
			     const struct op_stack *outer, struct python_modules *modules);

/*
 * The Python calls that the thread is in whose stack stacks__take() has just walked, as long as its
 * stack; *ret_same_nr: so many of them, from the outermost on, are among those of its last op.
 * NULL: they are not wanted or not known, and then those of the next op are like none.
 */
const struct python_calls *stacks__calls(struct stacks *k, struct thread_stack *t,
					 const struct op_stack *found, uint32_t *ret_same_nr);

/* Why no stack is walked any more, NULL: they are. Stays so. */
const char *stacks__refused(const struct stacks *k);

#endif /* GP_COLLECTOR_PYTHON_STACKS_H */
