/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What callbacks and wrappers work with. ops.c makes it and takes it away; op_callbacks.c and
 * memory.c use it while the gate is open.
 *
 * A callback sets its thread's `busy`, then checks that the gate is open. The collector's thread
 * shuts the gate, makes every thread see that (membarrier), and waits until no thread is busy.
 */
#ifndef GP_COLLECTOR_TORCH_OPS_SESSION_H
#define GP_COLLECTOR_TORCH_OPS_SESSION_H

#include "collector/python/stacks.h"
#include "collector/runtime/names.h"
#include "collector/runtime/ring_writer.h"
#include "collector/torch/inputs.h"
#include "collector/torch/layout.h"
#include "collector/torch/thread.h"
#include "collector/torch/torch.h"
#include "common/clock.h"

#include <stdbool.h>
#include <stdint.h>

#define OPS_CALLBACKS_NR 4

struct session {
	struct ring_writer *ring;
	struct names *names;
	struct inputs *inputs; /* NULL: shapes are not wanted or not available */
	struct stacks *stacks; /* NULL: neither stacks nor modules are */
	struct stacks
		*kept; /* kept between armings, because ids last as long as the ring; or NULL */
	bool modules;  /* module calls are wanted */
	bool tensors;  /* where the inputs' tensors are stored is recorded, too */
	bool caches_stacks; /* where the kernel's programs look */
	/* Written and read by different threads, like the two below: CPU time is recorded;
	 * beginnings of annotations are ignored. */
	bool cpu_time, ends_alone;
	bool ops_alone; /* records that the engine makes around nodes are ignored */
	bool memory;	/* CPU allocations are recorded */
	struct torch_api torch;
	struct torch_layout layout;
	uint32_t epoch;
	uint64_t prefix; /* of instances */
	uint64_t handles[OPS_CALLBACKS_NR];
	/* Which callbacks are in PyTorch's list; a fork's child inherits them. */
	bool added[OPS_CALLBACKS_NR];
};

struct gate {
	struct session *open;
};

#pragma GCC visibility push(hidden)
extern struct session ops_session;
extern struct gate *ops_gate; /* NULL: before ops__init() */
extern bool ops_fence_needed; /* no membarrier: each callback needs a fence of its own */
/* Ops that began on a thread without a state, or inside a callback. */
extern uint64_t ops_missed_nr;
#pragma GCC visibility pop

/* The session if the gate is open, else NULL. */
static inline struct session *ops_open_session(void)
{
	return __atomic_load_n(&ops_gate->open, __ATOMIC_ACQUIRE);
}

/* Makes the gate, shut, and readies its fence. Once per process or more often. 0 or -errno. */
int ops_session_init(void);

/* After the gate was shut or a callback removed: waits until no thread is inside a callback, for
 * ten seconds at most. False: one still is. */
bool ops_wait_until_left(void);

/* Resets the thread's state for this session. Call it where their epochs differ. */
void ops_begin_epoch(struct session *s, struct thread_state *t);

/* Returns the session, which stays until ops_leave(); NULL: the gate is shut, or the thread is in a
 * callback already, or has no state. `begins`: the latter two count as a missed op. */
static inline struct session *ops_enter(struct thread_state **ret_thread, bool begins)
{
	struct thread_state *t;
	struct session *s;

	if (!ops_open_session())
		return NULL;
	t = thread_state__get();
	if (!t || t->busy) {
		(void)__atomic_fetch_add(&ops_missed_nr, begins, __ATOMIC_RELAXED);
		return NULL;
	}
	__atomic_store_n(&t->busy, 1, __ATOMIC_RELAXED);
	if (__builtin_expect(ops_fence_needed, 0))
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
	else
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
	s = ops_open_session();
	if (!s)
		__atomic_store_n(&t->busy, 0, __ATOMIC_RELEASE);
	*ret_thread = t;
	return s;
}

static inline void ops_leave(struct thread_state *t)
{
	__atomic_store_n(&t->busy, 0, __ATOMIC_RELEASE);
}

/* A callback that took longer was preempted. */
#define OPS_TIMED_MAX_NS 20000

/* Now if this callback is to be timed (one of GP_TIMED_EVERY), else 0. */
static inline uint64_t ops_time_begin(struct thread_state *t)
{
	if (__builtin_expect(++t->calls < GP_TIMED_EVERY, 1))
		return 0;
	t->calls = 0;
	return clock_now_ns();
}

static inline void ops_time_end(struct session *s, uint64_t begin_ns)
{
	uint64_t ns;

	if (__builtin_expect(begin_ns == 0, 1))
		return;
	ns = clock_now_ns() - begin_ns;
	if (ns <= OPS_TIMED_MAX_NS)
		ring_writer__timed(s->ring, ns);
}

#endif /* GP_COLLECTOR_TORCH_OPS_SESSION_H */
