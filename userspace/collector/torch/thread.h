/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What the collector keeps for each thread that runs ops. A thread's state is written by that
 * thread alone; the collector's own thread looks at `busy`, to know when the last callback has
 * left, and then takes `depth`. States are reused when their thread ends and are never unmapped: a
 * callback may look at one at any time.
 */
#ifndef GP_COLLECTOR_TORCH_THREAD_H
#define GP_COLLECTOR_TORCH_THREAD_H

#include "collector/python/modules.h"
#include "collector/python/stacks.h"
#include "collector/runtime/names.h"
#include "common/step_annotations.h"

#include <stdbool.h>
#include <stdint.h>

/* Places for names, a power of two; two names to a place. */
#define THREAD_NAMES 256
#define PLACE_NAMES  2

#define NOT_ASYNC UINT16_MAX

struct open_op {
	const void *record;
	uint64_t start_ns;
	uint64_t instance;
	uint64_t parent;
	int64_t sequence_nr;
	uint64_t forward_thread;
	uint32_t name_id;
	uint16_t async_place; /* place in the table of what may move, or NOT_ASYNC */
	uint8_t scope;
	uint8_t outlives_parent; /* what it began in has ended */
	uint32_t inputs_id;
	uint32_t modules_nr; /* calls of modules in which it began */
	uint32_t calls_nr;   /* Python's likewise, 0: not known */
	uint32_t same_calls; /* as in struct gp_ev_op_inputs */
	struct op_stack stack;
};

struct cached_name {
	const char *pointer;
	const struct name *name;
};

struct thread_state {
	uint32_t busy;	/* a callback is at work */
	uint32_t depth; /* of open[] */
	uint32_t epoch; /* of the arming that what follows belongs to */
	uint32_t tid;
	uint32_t number;       /* of this state, for instances */
	uint32_t ops_nr;       /* instances given out under this number */
	uint32_t torch_thread; /* PyTorch's number of the thread */
	uint32_t in_use;       /* a thread has it */
	uint32_t calls;	       /* of callbacks, since one was timed */
	uint32_t reserved;
	uint64_t cpu_emitted_ns[STEP_MARKER_NONE]; /* when its CPU time was told last, by kind of
						      annotation */
	struct thread_state *next;
	struct gp_stack_top *top; /* where it says its stack, NULL: nowhere */
	struct open_op open[GP_OP_DEPTH];
	struct cached_name names[THREAD_NAMES][PLACE_NAMES]; /* of each place the newest first */
	struct thread_modules modules;
	struct thread_stack stack;
};

/* Once per process. 0 or -errno. */
int thread_states__init(void);
/* Whether `p` lies on the calling thread's C stack, in a call that has not returned. */
bool thread_is_on_stack(const void *p);
/* The calling thread's, NULL if there can be none. errno stays as it is. */
struct thread_state *thread_state__get(void);
/* The first of all states ever made; follow next. */
struct thread_state *thread_states__first(void);
/* Gives a state a fresh number. Numbers are 1 to 2^20 - 1, then begin again. */
void thread_state__renumber(struct thread_state *t);

/* The id of a name, by the thread's own cache. 0: there is no place for it. */
uint32_t thread_state__name_id(struct thread_state *t, struct names *names, struct ring_writer *w,
			       const char *text);

/* In a fork's child, where only the calling thread is left: takes all states back. */
void thread_states__forget(void);

/* Says at t->top what the kernel's programs may take for the stack of what happens in the innermost
 * op. The calling thread's. */
void thread_state__cache_stack(const struct thread_state *t);

/* How many ops were open in threads that have ended, since the last call. */
uint64_t thread_states__take_abandoned(void);

#endif /* GP_COLLECTOR_TORCH_THREAD_H */
