/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Kineto's Chrome trace. One event a line; the slices of each thread nest strictly because the
 * timeline's ops do. Asynchronous ops, which need not nest, are pairs of "b" and "e" events.
 */
#include "output/chrome/chrome.h"

#include "output/chrome/flow.h"
#include "output/format/stack_text.h"
#include "output/summary/triggers.h"

#include <errno.h>

#include "base/banned.h"

void chrome_begin(struct chrome *c)
{
	if (c->events++)
		chrome_lit(&c->out, ",\n  ");
	else
		chrome_lit(&c->out, "\n  ");
}

int64_t chrome_time(const struct chrome *c, uint64_t time_ns)
{
	int64_t at = (int64_t)time_ns + c->shift_ns;

	return at > 0 ? at : 0;
}

void chrome_where(struct chrome *c, uint32_t thread, uint64_t time_ns)
{
	const struct tl_thread *th = &c->t->threads.items[thread];

	chrome_lit(&c->out, ",\"pid\":");
	buf__i64(&c->out, c->t->processes.items[th->process].row_pid);
	chrome_lit(&c->out, ",\"tid\":");
	buf__u64(&c->out, th->tid);
	chrome_lit(&c->out, ",\"ts\":");
	buf__us(&c->out, chrome_time(c, time_ns));
}

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
	chrome_lit(&c->out, ",\"");
	buf__str(&c->out, key);
	chrome_lit(&c->out, "\":");
	buf__json(&c->out, text.bytes ? text.bytes : "");
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

/* `number` is unique among the trace's events. */
static void op_args(struct chrome *c, const struct tl_op *op, uint32_t number)
{
	const struct tl_op *sequenced = timeline__sequenced_op(c->t, number);

	chrome_lit(&c->out, ",\"args\":{\"External id\":");
	buf__u64(&c->out, (uint64_t)number + 1);
	chrome_inputs(c, op);
	if (sequenced->sequence_nr >= 0) {
		chrome_lit(&c->out, ",\"Sequence number\":");
		buf__i64(&c->out, sequenced->sequence_nr);
		chrome_lit(&c->out, ",\"Fwd thread id\":");
		buf__u64(&c->out, sequenced->forward_thread);
	}
	chrome_lit(&c->out, ",\"Ev Idx\":");
	buf__u64(&c->out, number);
	call_stacks(c, op, number);
	/* Kineto's word for an end that nobody saw. */
	if (op->flags & GP_OP_EXCEPTION)
		chrome_lit(&c->out, ",\"finished\":\"false\"");
	chrome_lit(&c->out, "}");
}

static void slice(struct chrome *c, const struct tl_op *op, uint32_t number)
{
	chrome_begin(c);
	chrome_lit(&c->out, "{\"ph\":\"X\",\"cat\":\"");
	buf__str(&c->out, category(op));
	chrome_lit(&c->out, "\",\"name\":");
	buf__json(&c->out, op->name);
	chrome_where(c, op->thread, op->start_ns);
	chrome_lit(&c->out, ",\"dur\":");
	buf__us(&c->out, chrome_time(c, op->end_ns) - chrome_time(c, op->start_ns));
	op_args(c, op, number);
	chrome_lit(&c->out, "}");
	chrome_flow_write(c, number);
}

static void call_args(struct chrome *c, const struct tl_python_call *call, uint32_t number)
{
	const struct tl_thread *thread = &c->t->threads.items[call->thread];

	chrome_lit(&c->out, ",\"args\":{\"Python id\":");
	buf__u64(&c->out, (uint64_t)number + 1);
	chrome_lit(&c->out, ",\"Python parent id\":");
	if (call->parent == TL_NONE)
		chrome_lit(&c->out, "null");
	else
		buf__u64(&c->out, (uint64_t)call->parent + 1);
	if (call->module_call != TL_NONE) {
		uint32_t module = c->t->module_calls.items[call->module_call].module;

		chrome_lit(&c->out, ",\"Python module id\":");
		buf__u64(&c->out, c->t->modules.items[module].number);
	}
	chrome_lit(&c->out, ",\"Python thread\":");
	buf__u64(&c->out, thread->tid);
	chrome_lit(&c->out, ",\"Bounds\":\"");
	buf__str(&c->out, tl_call_bounds(c->t));
	chrome_lit(&c->out, "\"}");
}

/* As torch.profiler writes Python functions, and modules among them. But one begins with the first
 * operator of the call and ends with the last. */
static void call_slice(struct chrome *c, const struct tl_python_call *call, uint32_t number)
{
	struct buf name = {0};

	stack_text_call(&name, c->t, call);
	chrome_begin(c);
	chrome_lit(&c->out, "{\"ph\":\"X\",\"cat\":\"python_function\",\"name\":");
	buf__json(&c->out, name.bytes ? name.bytes : "");
	chrome_where(c, call->thread, call->start_ns);
	chrome_lit(&c->out, ",\"dur\":");
	buf__us(&c->out, chrome_time(c, call->end_ns) - chrome_time(c, call->start_ns));
	call_args(c, call, number);
	chrome_lit(&c->out, "}");
	if (!c->out.err)
		c->out.err = buf__error(&name);
	buf__done(&name);
}

/* Before the ops: of slices with the same times viewers take the first as the outer one. */
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

static void gc_event(struct chrome *c, const char *phase, const struct tl_python_gc *gc,
		     uint64_t time_ns)
{
	chrome_begin(c);
	buf__printf(&c->out, "{\"ph\":\"%s\",\"cat\":\"python_function\",\"name\":\"Python GC\"",
		    phase);
	chrome_where(c, gc->thread, time_ns);
}

/* As torch.profiler writes them where it is asked to (record_python_gc_info), with what it does not
 * know in the arguments. */
static void gc_slice(struct chrome *c, const struct tl_python_gc *gc, size_t number)
{
	gc_event(c, gc->crossing ? "b" : "X", gc, gc->start_ns);
	if (gc->crossing) {
		buf__printf(&c->out, ",\"id\":%zu", number);
	} else {
		chrome_lit(&c->out, ",\"dur\":");
		buf__us(&c->out, chrome_time(c, gc->end_ns) - chrome_time(c, gc->start_ns));
	}
	buf__printf(&c->out, ",\"args\":{\"Generation\":%d,\"Collected\":%lld}}", gc->generation,
		    (long long)gc->collected);
	if (!gc->crossing)
		return;
	gc_event(c, "e", gc, gc->end_ns);
	buf__printf(&c->out, ",\"id\":%zu}", number);
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
	chrome_begin(c);
	if (begins)
		chrome_lit(&c->out, "{\"ph\":\"b\",\"cat\":\"");
	else
		chrome_lit(&c->out, "{\"ph\":\"e\",\"cat\":\"");
	buf__str(&c->out, category(op));
	chrome_lit(&c->out, "\",\"name\":");
	buf__json(&c->out, op->name);
	chrome_lit(&c->out, ",\"id\":");
	buf__u64(&c->out, (uint64_t)number + 1);
	chrome_where(c, op->thread, begins ? op->start_ns : op->end_ns);
	if (begins)
		op_args(c, op, number);
	chrome_lit(&c->out, "}");
}

int chrome_drain(struct chrome *c, bool all)
{
	return sink__drain(c->sink, &c->out, all ? 0 : CHROME_BLOCK_BYTES);
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

/* "Total Allocated" is the allocator's word; where it gave none, what is left of what was allocated
 * since the capture began. */
static void memory_event(struct chrome *c, const struct tl_memory *m, bool refused, uint64_t number)
{
	if (!chrome_shows_thread(c, m->thread))
		return;
	chrome_begin(c);
	chrome_lit(&c->out, "{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"s\":\"t\",\"name\":");
	buf__json(&c->out, refused ? "[OutOfMemory]" : "[memory]");
	chrome_where(c, m->thread, m->time_ns);
	chrome_lit(&c->out, ",\"args\":{\"Total Reserved\":");
	buf__u64(&c->out, m->reserved_bytes);
	chrome_lit(&c->out, ",\"Total Allocated\":");
	if (m->allocated_bytes)
		buf__u64(&c->out, m->allocated_bytes);
	else
		buf__i64(&c->out, m->total_bytes);
	chrome_lit(&c->out, ",\"Bytes\":");
	buf__i64(&c->out, m->bytes);
	if (!refused) {
		chrome_lit(&c->out, ",\"Addr\":");
		buf__u64(&c->out, m->address);
	}
	chrome_lit(&c->out, ",\"Device Id\":");
	buf__i64(&c->out, m->device_index);
	chrome_lit(&c->out, ",\"Device Type\":");
	buf__i64(&c->out, m->device_type);
	chrome_lit(&c->out, ",\"Ev Idx\":");
	buf__u64(&c->out, number);
	chrome_lit(&c->out, "}}");
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

static void write_triggers(struct chrome *c)
{
	for (size_t i = 0; i < c->t->triggers.nr; i++) {
		const struct tl_trigger *x = &c->t->triggers.items[i];
		struct buf words = {0};

		if (x->thread != TL_NONE && !chrome_shows_thread(c, x->thread))
			continue;
		trigger_words(&words, c->t, x);
		chrome_begin(c);
		buf__printf(&c->out,
			    "{\"ph\":\"i\",\"cat\":\"trigger\",\"s\":\"g\",\"name\":"
			    "\"Trigger: %s\"",
			    trigger_name(x));
		if (x->thread != TL_NONE) {
			chrome_where(c, x->thread, x->reported.head.time_ns);
		} else {
			chrome_lit(&c->out, ",\"pid\":\"\",\"tid\":\"\",\"ts\":");
			buf__us(&c->out, chrome_time(c, x->reported.head.time_ns));
		}
		chrome_lit(&c->out, ",\"args\":{\"why\":");
		buf__json(&c->out, words.bytes ? words.bytes : "");
		chrome_lit(&c->out, "}}");
		c->out.err = c->out.err ? c->out.err : buf__error(&words);
		buf__done(&words);
	}
}

static void write_end(struct chrome *c, const char *name)
{
	chrome_begin(c);
	chrome_lit(&c->out, "{\"name\":\"Record Window End\",\"ph\":\"i\",\"s\":\"g\",\"pid\":\"\","
			    "\"tid\":\"\",\"ts\":");
	buf__us(&c->out, chrome_time(c, c->t->end_ns));
	chrome_lit(&c->out, "}\n  ],\n  \"traceName\": ");
	buf__json(&c->out, name);
	chrome_lit(&c->out, "\n}\n");
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
	int err = write_all(c, name);

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
