/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The stack of open ops of each thread, and the events that it makes. Annotations and TorchScript
 * functions may end on another thread than they began on; they lie in the table of async_ops.h too.
 */
#include "collector/torch/op_callbacks.h"

#include "collector/python/stacks.h"
#include "collector/runtime/compat.h"
#include "collector/torch/async_ops.h"
#include "collector/torch/inputs.h"
#include "collector/torch/op_python.h"
#include "collector/torch/ops_session.h"
#include "collector/torch/tensors.h"
#include "collector/torch/thread.h"
#include "common/clock.h"
#include "common/step_annotations.h"

#include <string.h>

#define FORWARD_MAX (1ULL << 32)

static uint64_t next_instance(struct session *s, struct thread_state *t)
{
	if (++t->ops_nr == 0) {
		thread_state__renumber(t);
		t->ops_nr = 1;
	}
	return s->prefix | (uint64_t)t->number << 32 | t->ops_nr;
}

/* Not inlined: only with shapes a callback should need its kilobyte of stack. */
__attribute__((noinline)) static uint32_t inputs_id(struct session *s, const void *record)
{
	uint8_t data[GP_INPUTS_BYTES_MAX];
	size_t bytes = inputs_encode(&s->layout, record, inputs__have_room(s->inputs), data);

	return inputs__id(s->inputs, s->ring, data, bytes);
}

__attribute__((noinline)) static void write_tensors(struct session *s, const struct thread_state *t,
						    const struct open_op *op)
{
	const struct gp_ev_head head = {.tid = t->tid, .time_ns = clock_now_ns()};

	tensors_write(&s->layout, s->ring, op->record, &head, op->instance);
}

/* Removes ops that ended on another thread: the innermost ones, and those right below the innermost
 * one. The latter would pile up if each ended only after the next has begun. */
static void drop_ended(struct thread_state *t)
{
	while (t->depth && async_ops__has_ended(&t->open[t->depth - 1]))
		__atomic_store_n(&t->depth, t->depth - 1, __ATOMIC_RELAXED);
	while (t->depth > 1 && async_ops__has_ended(&t->open[t->depth - 2])) {
		t->open[t->depth - 2] = t->open[t->depth - 1];
		__atomic_store_n(&t->depth, t->depth - 1, __ATOMIC_RELAXED);
	}
}

/* Whether the record may lie on no stack. Such an op may outlive the op around it and end on
 * another thread: an annotation that another thread ends, a TorchScript function that has waited.
 */
static bool may_end_elsewhere(uint8_t scope)
{
	return scope == GP_SCOPE_USER || scope == GP_SCOPE_SCRIPT;
}

/* Whether it is the record that the autograd engine makes around a node's own record. */
static bool is_node(const char *text)
{
	static const char engine[] = "autograd::engine::";

	return text && !strncmp(text, engine, sizeof(engine) - 1);
}

static void push(struct session *s, struct thread_state *t, const void *record, uint8_t scope)
{
	const char *members = record;
	const char *text = s->torch.record_name(record);
	struct open_op *op;

	if (__atomic_load_n(&s->ops_alone, __ATOMIC_RELAXED) && is_node(text))
		return;
	if (__builtin_expect(t->epoch != s->epoch, 0))
		ops_begin_epoch(s, t);
	drop_ended(t);
	if (t->depth == GP_OP_DEPTH) {
		ring_writer__count(s->ring, GP_LOSS_DEPTH, 1);
		return;
	}
	op = &t->open[t->depth];
	op->record = record;
	op->instance = next_instance(s, t);
	op->parent = t->depth ? op[-1].instance : 0;
	memcpy(&op->sequence_nr, members + s->torch.sequence_offset, sizeof(op->sequence_nr));
	op->forward_thread = 0;
	if (scope == GP_SCOPE_BACKWARD)
		memcpy(&op->forward_thread, members + s->torch.forward_thread_offset,
		       sizeof(op->forward_thread));
	if (op->forward_thread >= FORWARD_MAX)
		op->forward_thread = 0;
	op->name_id = thread_state__name_id(t, s->names, s->ring, text ? text : "?");
	op->scope = scope;
	op->outlives_parent = false;
	op->inputs_id = s->inputs ? inputs_id(s, record) : 0;
	op->stack = (struct op_stack){0};
	op->modules_nr = 0;
	op->same_calls = 0;
	if (s->stacks)
		op_python__take(s->stacks, s->ring, t, s->modules ? s->names : NULL);
	op->async_place = NOT_ASYNC;
	__atomic_store_n(&t->depth, t->depth + 1, __ATOMIC_RELAXED);
	if (s->inputs && s->tensors)
		write_tensors(s, t, op);
	op->start_ns = clock_now_ns();
	if (t->modules.nr)
		modules__begin(&t->modules, op->instance, op->start_ns);
	if (may_end_elsewhere(scope) && !async_ops__add(op, t->tid, t->torch_thread)) {
		ring_writer__count(s->ring, GP_LOSS_DEPTH, 1);
		__atomic_store_n(&t->depth, t->depth - 1, __ATOMIC_RELAXED);
	}
}

static void emit(struct session *s, const struct open_op *op, uint32_t tid, uint32_t torch_thread,
		 uint8_t flags, uint64_t end_ns)
{
	struct gp_ev_op ev = {
		.head = {.kind = GP_EV_OP,
			 .flags = GP_OP_CALLBACK | flags,
			 .tid = tid,
			 .time_ns = end_ns},
		.start_ns = op->start_ns,
		.instance = op->instance,
		.parent = op->parent,
		.sequence_nr = op->sequence_nr,
		.forward_thread = op->forward_thread,
		.name_id = op->name_id,
		.stack_id = op->stack.id,
		.scope = op->scope,
		.thread_number = torch_thread,
	};

	if (op->inputs_id || op->same_calls) {
		struct gp_ev_op_inputs with = {
			.op = ev, .inputs_id = op->inputs_id, .same_calls = op->same_calls};

		(void)ring_writer__write(s->ring, &with, sizeof(with));
	} else {
		(void)ring_writer__write(s->ring, &ev, sizeof(ev));
	}
}

/*
 * Removes the op at `at`, which ends but is not the innermost. The ops above it may end elsewhere:
 * those outlive it or have ended on another thread. Or they were left by an exception: records of
 * operators lie on the stack, so an outer one cannot end before an inner one.
 */
static void close_above(struct session *s, struct thread_state *t, uint32_t at, uint64_t end_ns)
{
	uint32_t to = at;

	for (uint32_t i = t->depth - 1; i > at; i--) {
		if (t->open[i].async_place != NOT_ASYNC)
			continue;
		emit(s, &t->open[i], t->tid, t->torch_thread, GP_OP_EXCEPTION, end_ns);
		ring_writer__count(s->ring, GP_LOSS_EXCEPTION, 1);
	}
	for (uint32_t i = at + 1; i < t->depth; i++) {
		if (t->open[i].async_place == NOT_ASYNC || !async_ops__holds(&t->open[i]))
			continue;
		t->open[to] = t->open[i];
		t->open[to++].outlives_parent = true;
	}
	__atomic_store_n(&t->depth, to, __ATOMIC_RELAXED);
}

/* Ends the op of the record. False: the record is not known. */
static bool pop(struct session *s, struct thread_state *t, const void *record, uint8_t scope,
		uint64_t end_ns)
{
	struct async_op other;
	struct open_op op;
	uint32_t at = t->epoch == s->epoch ? t->depth : 0;

	/* Skips ops that have ended elsewhere: the record's address may have been reused. */
	while (at && (t->open[at - 1].record != record || async_ops__has_ended(&t->open[at - 1])))
		at--;
	if (!at) {
		if (!may_end_elsewhere(scope) || !async_ops__take_record(record, &other))
			return false;
		emit(s, &other.op, other.tid, other.torch_thread, GP_OP_ASYNC, end_ns);
		return true;
	}
	op = t->open[at - 1];
	if (op.modules_nr)
		modules__end(&t->modules, op.modules_nr, end_ns);
	if (at == t->depth)
		__atomic_store_n(&t->depth, at - 1, __ATOMIC_RELAXED);
	else
		close_above(s, t, at - 1, end_ns);
	if (op.async_place == NOT_ASYNC || async_ops__take(&op))
		emit(s, &op, t->tid, t->torch_thread, op.outlives_parent ? GP_OP_ASYNC : 0, end_ns);
	return true;
}

/* The least time between two readings for each marker: that clock needs a system call. */
#define CPU_TIME_NS 2000000

static void emit_cpu_time(struct session *s, struct thread_state *t, enum step_marker marker,
			  uint64_t end_ns)
{
	struct gp_ev_cpu_time ev = {
		.head = {.kind = GP_EV_CPU_TIME, .tid = t->tid, .time_ns = end_ns}};

	if (end_ns - t->cpu_emitted_ns[marker] < CPU_TIME_NS)
		return;
	t->cpu_emitted_ns[marker] = end_ns;
	ev.cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	(void)ring_writer__write(s->ring, &ev, sizeof(ev));
}

/* Writes an annotation whose beginning was not recorded. */
static void emit_end(struct session *s, struct thread_state *t, const char *text, uint64_t end_ns)
{
	struct open_op op = {.start_ns = end_ns, .sequence_nr = -1, .scope = GP_SCOPE_USER};

	if (__builtin_expect(t->epoch != s->epoch, 0))
		ops_begin_epoch(s, t);
	op.instance = next_instance(s, t);
	op.name_id = thread_state__name_id(t, s->names, s->ring, text);
	emit(s, &op, t->tid, t->torch_thread, 0, end_ns);
}

/* Ends an annotation while CPU time is reported at the ends of step annotations. */
static void pop_step(struct session *s, struct thread_state *t, const void *record, uint64_t end_ns)
{
	const char *text = s->torch.record_name(record);
	enum step_marker marker = text ? step_marker_by_prefix(text) : STEP_MARKER_NONE;

	if (marker != STEP_MARKER_NONE)
		emit_cpu_time(s, t, marker, end_ns);
	if (!pop(s, t, record, GP_SCOPE_USER, end_ns) && marker != STEP_MARKER_NONE)
		emit_end(s, t, text, end_ns);
}

static void *start(void **ret_context, const void *record, uint8_t scope)
{
	struct thread_state *t;
	struct session *s;

	*ret_context = NULL;
	s = ops_enter(&t, true);
	if (s) {
		uint64_t begin_ns = ops_time_begin(t);

		push(s, t, record, scope);
		thread_state__cache_stack(t);
		ops_time_end(s, begin_ns);
		ops_leave(t);
	}
	return ret_context;
}

static void end(const void *record, uint8_t scope)
{
	struct thread_state *t;
	struct session *s = ops_enter(&t, false);

	if (s) {
		uint64_t begin_ns = ops_time_begin(t), end_ns = clock_now_ns();

		if (scope == GP_SCOPE_USER && __atomic_load_n(&s->cpu_time, __ATOMIC_RELAXED))
			pop_step(s, t, record, end_ns);
		else
			(void)pop(s, t, record, scope, end_ns);
		if (t->epoch == s->epoch)
			thread_state__cache_stack(t);
		ops_time_end(s, begin_ns);
		ops_leave(t);
	}
}

/* One pair of callbacks for each scope, so that the scope need not be read from the record. */
static void *start_function(void **ret_context, const void *record)
{
	return start(ret_context, record, GP_SCOPE_FUNCTION);
}

static void *start_backward(void **ret_context, const void *record)
{
	return start(ret_context, record, GP_SCOPE_BACKWARD);
}

static void *start_script(void **ret_context, const void *record)
{
	return start(ret_context, record, GP_SCOPE_SCRIPT);
}

static void *start_user(void **ret_context, const void *record)
{
	*ret_context = NULL;
	if (__atomic_load_n(&ops_session.ends_alone, __ATOMIC_RELAXED))
		return ret_context;
	return start(ret_context, record, GP_SCOPE_USER);
}

static void end_op(const void *record, void *context)
{
	end(record, GP_SCOPE_FUNCTION);
}

static void end_user(const void *record, void *context)
{
	end(record, GP_SCOPE_USER);
}

static void end_script(const void *record, void *context)
{
	end(record, GP_SCOPE_SCRIPT);
}

const struct op_callback op_callbacks[OPS_CALLBACKS_NR] = {
	{start_user, end_user, GP_SCOPE_USER},
	{start_function, end_op, GP_SCOPE_FUNCTION},
	{start_backward, end_op, GP_SCOPE_BACKWARD},
	{start_script, end_script, GP_SCOPE_SCRIPT},
};
