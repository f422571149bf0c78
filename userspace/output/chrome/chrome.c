/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Kineto's Chrome trace, with one event per line. The slices of a thread nest strictly, because the
 * timeline's ops do. Asynchronous ops need not nest: they are pairs of "b" and "e" events.
 */
#include "output/chrome/chrome.h"

#include "output/chrome/flow.h"
#include "output/format/output_format.h"
#include "output/format/stack_text.h"
#include "output/summary/triggers.h"

#include <errno.h>

#include "base/banned.h"

static const char *category(const struct tl_op *op)
{
	return op->scope == GP_SCOPE_USER ? "user_annotation" : "cpu_op";
}

/* Outermost first, each frame with a semicolon behind it, as Kineto has it. */
static void one_stack(struct chrome *c, const char *key, const struct tl_stack *s)
{
	struct buf text = {0};

	if (!s->nr)
		return;
	stack_text_all(&text, c->t->recording, s);
	buf__char(&text, ';');
	json__put_text(&c->json, key, text.bytes ? text.bytes : "");
	if (!c->out.err)
		c->out.err = buf__error(&text);
	buf__done(&text);
}

/* Its own, and that of the forward op whose gradient it computes. */
static void call_stacks(struct chrome *c, const struct tl_op *op, uint32_t number)
{
	const struct tl_stack own = timeline__stack(c->t, op->stack_id, TL_NONE);
	const struct tl_stack forward = timeline__stack(c->t, 0, number);

	one_stack(c, "Call stack", &own);
	if (forward.is_forward)
		one_stack(c, "Forward call stack", &forward);
}

/* The arguments and the event's end. `number` is unique among the trace's events. */
static void op_args(struct chrome *c, const struct tl_op *op, uint32_t number)
{
	const struct tl_op *sequenced = timeline__sequenced_op(c->t, number);

	chrome_begin_args(c);
	json__put_u64(&c->json, "External id", (uint64_t)number + 1);
	chrome_inputs(c, op);
	if (sequenced->sequence_nr >= 0) {
		json__put_i64(&c->json, "Sequence number", sequenced->sequence_nr);
		json__put_u64(&c->json, "Fwd thread id", sequenced->forward_thread);
	}
	json__put_u64(&c->json, "Ev Idx", number);
	call_stacks(c, op, number);
	/* Kineto's word for an end that nobody saw. */
	if (op->flags & GP_OP_EXCEPTION)
		json__put_word(&c->json, "finished", "false");
	chrome_end_args(c);
}

static void slice(struct chrome *c, const struct tl_op *op, uint32_t number)
{
	chrome_begin_event(c, "X", category(op), op->name);
	chrome_where(c, op->thread, op->start_ns);
	chrome_duration(c, op->start_ns, op->end_ns);
	op_args(c, op, number);
	chrome_flow_write(c, number);
}

static void call_args(struct chrome *c, const struct tl_python_call *call, uint32_t number)
{
	const struct tl_thread *thread = &c->t->threads.items[call->thread];

	chrome_begin_args(c);
	json__put_u64(&c->json, "Python id", (uint64_t)number + 1);
	if (call->parent == TL_NONE)
		json__put_null(&c->json, "Python parent id");
	else
		json__put_u64(&c->json, "Python parent id", (uint64_t)call->parent + 1);
	if (call->module_call != TL_NONE) {
		uint32_t module = c->t->module_calls.items[call->module_call].module;

		json__put_u64(&c->json, "Python module id", c->t->modules.items[module].number);
	}
	json__put_u64(&c->json, "Python thread", thread->tid);
	json__put_word(&c->json, "Bounds", tl_call_bounds(c->t));
	chrome_end_args(c);
}

/* As torch.profiler writes Python functions, and modules among them. But one begins with the first
 * operator of the call and ends with the last. */
static void call_slice(struct chrome *c, const struct tl_python_call *call, uint32_t number)
{
	struct buf name = {0};

	stack_text_call(&name, c->t, call);
	chrome_begin_event(c, "X", "python_function", name.bytes ? name.bytes : "");
	chrome_where(c, call->thread, call->start_ns);
	chrome_duration(c, call->start_ns, call->end_ns);
	call_args(c, call, number);
	if (!c->out.err)
		c->out.err = buf__error(&name);
	buf__done(&name);
}

/* Writes calls before ops: of two slices with the same times, viewers take the first as the outer
 * one. */
static int write_calls(struct chrome *c)
{
	int err = 0;

	for (uint32_t i = 0; i < c->t->python_calls.nr && !err; i++) {
		if (chrome_shows_thread(c, c->t->python_calls.items[i].thread))
			call_slice(c, &c->t->python_calls.items[i], i);
		err = chrome_drain(c, false);
	}
	return err;
}

/* As torch.profiler writes them where it is asked to (record_python_gc_info); the arguments are
 * gpuprof's own. */
static void gc_slice(struct chrome *c, const struct tl_python_gc *gc, size_t number)
{
	chrome_begin_event(c, gc->crossing ? "b" : "X", "python_function", "Python GC");
	chrome_where(c, gc->thread, gc->start_ns);
	if (gc->crossing)
		json__put_u64(&c->json, "id", number);
	else
		chrome_duration(c, gc->start_ns, gc->end_ns);
	chrome_begin_args(c);
	json__put_i64(&c->json, "Generation", gc->generation);
	json__put_i64(&c->json, "Collected", gc->collected);
	chrome_end_args(c);
	if (!gc->crossing)
		return;
	chrome_begin_event(c, "e", "python_function", "Python GC");
	chrome_where(c, gc->thread, gc->end_ns);
	json__put_u64(&c->json, "id", number);
	json__end(&c->json);
}

static int write_gcs(struct chrome *c)
{
	int err = 0;

	for (size_t i = 0; i < c->t->python_gcs.nr && !err; i++) {
		if (chrome_shows_thread(c, c->t->python_gcs.items[i].thread))
			gc_slice(c, &c->t->python_gcs.items[i], i + 1);
		err = chrome_drain(c, false);
	}
	return err;
}

static void async_half(struct chrome *c, const struct tl_op *op, uint32_t number, bool begins)
{
	chrome_begin_event(c, begins ? "b" : "e", category(op), op->name);
	json__put_u64(&c->json, "id", (uint64_t)number + 1);
	chrome_where(c, op->thread, begins ? op->start_ns : op->end_ns);
	if (begins)
		op_args(c, op, number);
	else
		json__end(&c->json);
}

static int write_ops(struct chrome *c)
{
	int err = 0;

	for (uint32_t i = 0; i < c->t->ops.nr && !err; i++) {
		const struct tl_op *op = &c->t->ops.items[i];

		if (!chrome_shows_thread(c, op->thread))
			continue;
		if (op->flags & GP_OP_ASYNC) {
			async_half(c, op, i, true);
			async_half(c, op, i, false);
		} else {
			slice(c, op, i);
		}
		err = chrome_drain(c, false);
	}
	return err;
}

/* An event without duration, up to its scope: a thread ("t"), a process ("p") or all ("g"). */
static void begin_instant(struct chrome *c, const char *category, const char *scope)
{
	chrome_begin(c);
	json__put_word(&c->json, "ph", "i");
	json__put_word(&c->json, "cat", category);
	json__put_word(&c->json, "s", scope);
}

/* "Total Allocated" is the allocator's own figure; where it gave none, what is left of what was
 * allocated since the capture began. */
static void memory_event(struct chrome *c, const struct tl_memory *m, bool refused, uint64_t number)
{
	if (!chrome_shows_thread(c, m->thread))
		return;
	begin_instant(c, "cpu_instant_event", "t");
	json__put_word(&c->json, "name", refused ? "[OutOfMemory]" : "[memory]");
	chrome_where(c, m->thread, m->time_ns);
	chrome_begin_args(c);
	json__put_u64(&c->json, "Total Reserved", m->reserved_bytes);
	json__key(&c->json, "Total Allocated");
	if (m->allocated_bytes)
		json__u64(&c->json, m->allocated_bytes);
	else
		json__i64(&c->json, m->total_bytes);
	json__put_i64(&c->json, "Bytes", m->bytes);
	if (!refused)
		json__put_u64(&c->json, "Addr", m->address);
	json__put_i64(&c->json, "Device Id", m->device_index);
	json__put_i64(&c->json, "Device Type", m->device_type);
	json__put_u64(&c->json, "Ev Idx", number);
	chrome_end_args(c);
}

static int write_memory(struct chrome *c)
{
	uint64_t number = c->t->ops.nr;
	int err = 0;

	for (size_t i = 0; i < c->t->memory.nr && !err; i++) {
		if (tl_memory_is_pytorch(&c->t->memory.items[i]))
			memory_event(c, &c->t->memory.items[i], false, number++);
		err = chrome_drain(c, false);
	}
	for (size_t i = 0; i < c->t->out_of_memory.nr && !err; i++) {
		memory_event(c, &c->t->out_of_memory.items[i], true, number++);
		err = chrome_drain(c, false);
	}
	return err;
}

/* The moment of what belongs to no process, as Kineto writes it. */
static void where_nowhere(struct chrome *c, uint64_t time_ns)
{
	json__put_word(&c->json, "pid", "");
	json__put_word(&c->json, "tid", "");
	json__put_us(&c->json, "ts", chrome_time(c, time_ns));
}

static void trigger_event(struct chrome *c, const struct tl_trigger *x)
{
	struct buf words = {0};

	trigger_words(&words, c->t, x);
	begin_instant(c, "trigger", "g");
	json__key(&c->json, "name");
	json__printf(&c->json, "Trigger: %s", trigger_name(x));
	if (x->thread != TL_NONE)
		chrome_where(c, x->thread, x->reported.head.time_ns);
	else
		where_nowhere(c, x->reported.head.time_ns);
	chrome_begin_args(c);
	json__put_text(&c->json, "why", words.bytes ? words.bytes : "");
	chrome_end_args(c);
	c->out.err = c->out.err ? c->out.err : buf__error(&words);
	buf__done(&words);
}

static void write_triggers(struct chrome *c)
{
	for (size_t i = 0; i < c->t->triggers.nr; i++) {
		const struct tl_trigger *x = &c->t->triggers.items[i];

		if (x->thread == TL_NONE || chrome_shows_thread(c, x->thread))
			trigger_event(c, x);
	}
}

/* The last event, and the document's end. */
static void write_end(struct chrome *c, const char *name)
{
	chrome_begin(c);
	json__put_word(&c->json, "name", "Record Window End");
	json__put_word(&c->json, "ph", "i");
	json__put_word(&c->json, "s", "g");
	where_nowhere(c, c->t->end_ns);
	json__end(&c->json);
	json__end(&c->json);
	json__put_text(&c->json, "traceName", name);
	json__end(&c->json);
	buf__char(&c->out, '\n');
}

static int write_all(struct chrome *c, const char *name)
{
	int err = flow_find(c->t, &c->flow);

	if (err)
		return err;
	chrome_header(c);
	chrome_names(c);
	err = chrome_gpu_names(c);
	if (!err)
		err = chrome_drain(c, false);
	if (!err)
		err = write_calls(c);
	if (!err)
		err = write_ops(c);
	if (!err)
		err = write_gcs(c);
	if (!err)
		err = chrome_gpu(c);
	if (!err)
		err = write_memory(c);
	if (!err)
		err = chrome_ranks(c);
	if (!err)
		err = chrome_samples(c);
	if (err)
		return err;
	write_triggers(c);
	write_end(c, name);
	return chrome_drain(c, true);
}

int output_chrome(struct sink *s, const struct timeline *t, const char *name)
{
	return output_chrome_process(s, t, TL_NONE, name);
}

static int write_trace(struct chrome *c, const char *name)
{
	int err;

	json__init(&c->json, &c->out);
	err = write_all(c, name);
	buf__done(&c->out);
	hash__done(&c->flow);
	chrome_gpu_done(c);
	return err;
}

int output_chrome_process(struct sink *s, const struct timeline *t, uint32_t process,
			  const char *name)
{
	return write_trace(&(struct chrome){.sink = s, .t = t, .process = process}, name);
}

int output_chrome_worker(struct sink *s, const struct timeline *t, uint32_t process,
			 const char *name)
{
	return write_trace(
		&(struct chrome){.sink = s, .t = t, .process = process, .for_tensorboard = true},
		name);
}

int output_format_chrome(struct sink *s, const struct timeline *t,
			 const struct output_request *request)
{
	return output_chrome_process(s, t, request->process, request->path);
}

int output_format_tensorboard(struct sink *s, const struct timeline *t,
			      const struct output_request *request)
{
	return output_chrome_worker(s, t, request->process, request->path);
}
