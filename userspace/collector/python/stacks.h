/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Python stacks of ops, and the ids that stand for them in the ring. The table is append-only and
 * without locks, as in runtime/names.h: a stack is announced in the ring (GP_EV_STACK) before its
 * id is used. Stacks are compared by a 64-bit hash.
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

/* The stack under which an op began. */
struct op_stack {
	uint64_t frame;	 /* address of the innermost frame; 0: none */
	uint64_t state;	 /* its thread state */
	uint64_t interp; /* the only interpreter; 0: there are several, or the stack is doubtful */
	uint32_t id;	 /* 0: none */
	uint32_t flags;	 /* enum gp_stack_flags */
};

/* A thread's state; `state` and both counts of checks are zero at first. */
struct thread_stack {
	uint64_t state;	    /* its Python thread state that was last validated */
	uint32_t checks_nr; /* walks that were done both ways */
	uint32_t reserved;
	/* Here, not on the thread's C stack, of which there may be little left. */
	struct python_stack walked, again;
	/* calls[calls_now] has the calls in which its last op began, if they are known. */
	struct python_calls calls[2], calls_again;
	uint32_t calls_now;
	uint32_t calls_checks_nr; /* as checks_nr, for calls */
};

/* `ids` false: stacks get no ids, because only module calls are wanted. NULL with *why_text set if
 * stacks cannot be taken. */
struct stacks *stacks__new(const struct gp_python *layout, bool ids, const char **why_text);
/* Releases Python's library. Afterwards only call stacks__resume() or stacks__free(). NULL is
 * fine. */
void stacks__release(struct stacks *k);
/* Takes stacks again. Known ids keep their meaning, and new ones go on from there. NULL, or why
 * not; then nothing has changed. */
const char *stacks__resume(struct stacks *k, const struct gp_python *layout, bool ids);
/* After either of them: compares Python's calls, too (stacks__calls()). Stacks must have ids. */
void stacks__want_calls(struct stacks *k);
void stacks__free(struct stacks *k);

/*
 * Takes the calling thread's stack. Call it only on a thread that is inside C code. `outer` is the
 * stack of an op that is open on this thread's C stack, or NULL. If the innermost frame is still
 * the one under which that op began, it still waits in the same call, so the stack is the same.
 * Missing and incomplete stacks are counted in `w`. `modules`, if not NULL, gets the module calls
 * that the thread is in, none if they are not known; it is not written if the stack is that of
 * `outer`.
 */
struct op_stack stacks__take(struct stacks *k, struct ring_writer *w, struct thread_stack *t,
			     const struct op_stack *outer, struct python_modules *modules);

/*
 * The Python calls of the stack that stacks__take() has just taken, one for each frame.
 * *ret_same_nr of them, from the outermost on, are those of the thread's last op. NULL: they are
 * not wanted or not known; then the next op shares none.
 */
const struct python_calls *stacks__calls(struct stacks *k, struct thread_stack *t,
					 const struct op_stack *found, uint32_t *ret_same_nr);

/* Why stacks are no longer taken; NULL: they are. Final, until stacks__resume(). */
const char *stacks__refused(const struct stacks *k);

#endif /* GP_COLLECTOR_PYTHON_STACKS_H */
