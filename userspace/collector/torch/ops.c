/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Which callbacks are in PyTorch's list, and the session that they work with. All on the
 * collector's thread, except for ops__forget(), which runs in a fork's child.
 */
#include "collector/torch/ops.h"

#include "collector/python/stack_cache.h"
#include "collector/runtime/compat.h"
#include "collector/runtime/fork_guard.h"
#include "collector/torch/async_ops.h"
#include "collector/torch/memory.h"
#include "collector/torch/op_callbacks.h"
#include "collector/torch/ops_session.h"
#include "collector/torch/thread.h"

#define INSTANCE_OURS (1ULL << 63)
#define PROCESS_MASK  0x7ffULL
#define PROCESS_SHIFT 52

static bool stuck; /* a thread did not leave its callback */

int ops__init(void)
{
	int err = ops_session_init();

	if (err)
		return err;
	/* Without it the kernel walks the stacks of allocations. */
	(void)stack_cache__init();
	return thread_states__init();
}

static void remove_callback(struct session *s, int i)
{
	if (s->added[i])
		torch_api__remove(&s->torch, s->handles[i]);
	s->added[i] = false;
}

static void add_callback(struct session *s, int i)
{
	struct torch_callback callback = {
		.start = op_callbacks[i].start,
		.end = op_callbacks[i].end,
		.probability = 1.0,
		.needs_inputs = s->inputs != NULL,
	};

	if (s->added[i])
		return;
	callback.scopes[op_callbacks[i].scope] = 1;
	s->handles[i] = torch_api__add(&s->torch, callback);
	s->added[i] = true;
}

/* NULL, or why not. */
static const char *arm_inputs(struct session *s)
{
	const char *why;

	fork_guard__hold(); /* The operators it calls read the list of callbacks. */
	why = torch_layout__find(&s->layout, &s->torch);
	fork_guard__release();
	if (why)
		return why;
	s->inputs = inputs__new();
	return s->inputs ? NULL : "shapes: out of memory";
}

/* NULL, or why not. */
static const char *arm_stacks(struct session *s, const struct ops_extras *extras)
{
	const char *why = NULL;

	if (s->kept)
		why = stacks__resume(s->kept, extras->python, extras->stacks);
	else
		s->kept = stacks__new(extras->python, extras->stacks, &why);
	s->stacks = why ? NULL : s->kept;
	if (s->stacks && extras->stacks && extras->calls)
		stacks__want_calls(s->stacks);
	return why;
}

enum torch_result ops__arm(struct ring_writer *w, struct ops_extras *extras, const char **why_text)
{
	struct session *s = &ops_session;
	enum torch_result result;

	*why_text = "operator callbacks: a thread is stopped inside an earlier one";
	if (!ops__disarm())
		return TORCH_REFUSED;
	result = torch_api__bind(&s->torch, why_text);
	if (result != TORCH_BOUND)
		return result;
	s->names = names__new(1);
	if (!s->names) {
		torch_api__release(&s->torch);
		*why_text = "operator callbacks: out of memory";
		return TORCH_REFUSED;
	}
	extras->shapes_why = extras->shapes ? arm_inputs(s) : NULL;
	extras->tensors_why =
		extras->tensors ? torch_layout__find_storage(&s->layout, &s->torch) : NULL;
	s->tensors = extras->tensors && !extras->tensors_why;
	s->modules = extras->modules;
	extras->stacks_why = extras->python ? arm_stacks(s, extras) : NULL;
	s->caches_stacks = s->stacks && extras->stacks;
	s->ring = w;
	s->epoch++;
	s->prefix = INSTANCE_OURS | (w->page->process & PROCESS_MASK) << PROCESS_SHIFT;
	async_ops__clear();
	(void)thread_states__take_abandoned();
	__atomic_store_n(&ops_missed_nr, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&ops_gate->open, s, __ATOMIC_RELEASE);
	return TORCH_BOUND;
}

static void free_tables(struct session *s)
{
	names__free(s->names);
	inputs__free(s->inputs);
	s->names = NULL;
	s->inputs = NULL;
	s->stacks = NULL;
	s->ring = NULL;
}

const char *ops__stacks_refused(void)
{
	return ops_session.stacks ? stacks__refused(ops_session.stacks) : NULL;
}

static bool covers(uint8_t scope, bool operators, bool annotations)
{
	if (scope == GP_SCOPE_USER)
		return annotations;
	return operators && (annotations || scope != GP_SCOPE_BACKWARD);
}

void ops__cover(bool operators, bool annotations)
{
	if (!ops_gate || !ops_open_session())
		return;
	__atomic_store_n(&ops_session.ops_alone, !annotations, __ATOMIC_RELAXED);
	for (int i = 0; i < OPS_CALLBACKS_NR; i++)
		if (covers(op_callbacks[i].scope, operators, annotations))
			add_callback(&ops_session, i);
		else
			remove_callback(&ops_session, i);
}

void ops__emit_cpu_time(bool emit, bool ends_alone)
{
	__atomic_store_n(&ops_session.cpu_time, emit, __ATOMIC_RELAXED);
	__atomic_store_n(&ops_session.ends_alone, emit && ends_alone, __ATOMIC_RELAXED);
}

/* A thread that is in a wrapper now may still write its event. */
static void stop_memory(struct session *s)
{
	memory__unhook();
	__atomic_store_n(&s->memory, false, __ATOMIC_RELAXED);
}

const char *ops__emit_memory(bool emit)
{
	struct session *s = &ops_session;
	const char *why = NULL;

	if (!ops_gate || !ops_open_session())
		return NULL;
	if (emit) {
		/* Before the hook, so that the first call is reported. */
		__atomic_store_n(&s->memory, true, __ATOMIC_RELAXED);
		why = memory__hook();
	}
	if ((!emit || why) && s->memory) {
		stop_memory(s);
		(void)ops_wait_until_left();
	}
	return why;
}

bool ops__disarm(void)
{
	struct session *s = &ops_session;
	uint64_t open_nr;

	if (!ops_gate || (!ops_open_session() && !stuck))
		return true;
	stop_memory(s);
	for (int i = 0; i < OPS_CALLBACKS_NR && ops_open_session(); i++)
		remove_callback(s, i);
	__atomic_store_n(&ops_gate->open, NULL, __ATOMIC_SEQ_CST);
	stuck = !ops_wait_until_left();
	if (stuck)
		return false;
	stack_cache__clear();
	open_nr = thread_states__take_abandoned();
	for (struct thread_state *t = thread_states__first(); t; t = t->next) {
		if (t->epoch == s->epoch)
			open_nr += async_ops__open_nr(
				t->open, __atomic_exchange_n(&t->depth, 0, __ATOMIC_RELAXED));
		modules__leave(&t->modules, s->ring, s->epoch);
	}
	ring_writer__count(s->ring, GP_LOSS_OPEN_AT_END, open_nr);
	ring_writer__count(s->ring, GP_LOSS_THREAD,
			   __atomic_exchange_n(&ops_missed_nr, 0, __ATOMIC_RELAXED));
	torch_api__release(&s->torch);
	stacks__release(s->stacks);
	free_tables(s);
	return true;
}

void ops__release(void)
{
	if (stuck)
		return;
	stacks__free(ops_session.kept);
	ops_session.kept = NULL;
}

void ops__forget(void)
{
	/* The gate is shut: a fork's child finds its page zeroed. */
	memory__forget();
	ops_session.memory = false;
	free_tables(&ops_session);
	stacks__free(ops_session.kept);
	ops_session.kept = NULL;
	stuck = false;
	thread_states__forget();
}
