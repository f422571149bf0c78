/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The collector's state for each thread that runs ops. Only the thread itself writes its state. The
 * collector's thread reads `busy`, to know when the last callback has left, and then takes `depth`.
 * States are reused when their thread ends and are never unmapped, because a callback may read one
 * at any time.
 */
#ifndef GP_COLLECTOR_TORCH_THREAD_H
#define GP_COLLECTOR_TORCH_THREAD_H

#include "collector/python/modules.h"
#include "collector/python/stacks.h"
#include "collector/runtime/names.h"
#include "common/step_annotations.h"

#include <stdbool.h>
#include <stdint.h>

/* The cache of names: sets (a power of two), and names in a set. */
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
	uint16_t async_place; /* in the table of async_ops.h, or NOT_ASYNC */
	uint8_t scope;
	uint8_t outlives_parent; /* the op around it has ended */
	uint32_t inputs_id;
	uint32_t modules_nr; /* module calls in which it began */
	uint32_t calls_nr;   /* Python calls in which it began; 0: not known */
	uint32_t same_calls; /* as in struct gp_ev_op_inputs */
	struct op_stack stack;
};

struct cached_name {
	const char *pointer;
	const struct name *name;
};

struct thread_state {
	uint32_t busy;	/* a callback is running */
	uint32_t depth; /* ops in open[] */
	uint32_t epoch; /* the arming that this state belongs to */
	uint32_t tid;
	uint32_t number;       /* part of its ops' instances */
	uint32_t ops_nr;       /* instances given out under this number */
	uint32_t torch_thread; /* PyTorch's number of the thread */
	uint32_t in_use;       /* a thread has this state */
	uint32_t calls;	       /* callbacks since one was timed */
	uint32_t reserved;
	uint64_t cpu_emitted_ns[STEP_MARKER_NONE]; /* when its CPU time was written last, by kind of
						      annotation */
	struct thread_state *next;
	struct gp_stack_top *top; /* its entry of python/stack_cache.h; NULL: none */
	struct open_op open[GP_OP_DEPTH];
	struct cached_name names[THREAD_NAMES][PLACE_NAMES]; /* the newest first */
	struct thread_modules modules;
	struct thread_stack stack;
};

/* Call it before the others; may be repeated. 0 or -errno. */
int thread_states__init(void);
/* Whether `p` lies on the calling thread's C stack, in a call that has not returned. */
bool thread_is_on_stack(const void *p);
/* The calling thread's state; NULL if there are too many or no memory. errno stays as it is. */
struct thread_state *thread_state__get(void);
/* The first of all states that were ever made; the others follow by `next`. */
struct thread_state *thread_states__first(void);
/* Gives a state a new number: 1 to 2^20 - 1, then from 1 again. */
void thread_state__renumber(struct thread_state *t);

/* The id of a name, through the thread's own cache. 0: there is no room for it. */
uint32_t thread_state__name_id(struct thread_state *t, struct names *names, struct ring_writer *w,
			       const char *text);

/* Frees all states in a fork's child, where only the calling thread is left. */
void thread_states__forget(void);

/* Updates the calling thread's entry of the stack cache: the BPF programs may use the stack of the
 * innermost op for what happens inside it. */
void thread_state__cache_stack(const struct thread_state *t);

/* The number of ops that were open as their thread ended, since the last call. */
uint64_t thread_states__take_abandoned(void);

#endif /* GP_COLLECTOR_TORCH_THREAD_H */
