/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Perfetto's own trace: a track for each thread, each stream, and the memory of each device. Slices
 * begin and end in the order of their nesting, so that slices with equal times nest too.
 */
#include "output/perfetto/perfetto.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "base/hash.h"
#include "base/vec.h"
#include "output/chrome/flow.h"
#include "output/format/output_format.h"
#include "output/format/stack_text.h"
#include "output/memory/memory_usage.h"
#include "output/summary/triggers.h"

/* In struct open: the index is that of an API call, or of a call of a Python function. */
#define CALL   (1ULL << 32)
#define PYTHON (1ULL << 33)

struct open {
	uint64_t end_ns;
	uint64_t who; /* an op's index, or an API call's and CALL, or ... */
};

struct writer {
	struct perfetto *p;
	const struct timeline *t;
	struct hash flow;   /* forward op -> backward op */
	struct hash tracks; /* that the reader knows */
	struct hash stacks; /* stack id -> its text, kept */
	struct buf text;
	VEC(struct open) open; /* the slices that are open, outermost first */
	bool *begun;	       /* Python calls that have their slice */
	int err;
};

/* True the first time. */
static bool is_new(struct writer *w, uint64_t uuid)
{
	if (w->err || hash__find(&w->tracks, uuid))
		return false;
	w->err = hash__set(&w->tracks, uuid, 1);
	return !w->err;
}

/* ---- ops and calls ---- */

static void end_slice(struct writer *w, uint64_t track)
{
	const struct perfetto_event e = {.type = PERFETTO_END,
					 .track = track,
					 .time_ns = w->open.items[--w->open.nr].end_ns};

	perfetto__event(w->p, &e);
}

/* Ends what is open until `parent` (TL_NONE: nothing) is the innermost, or a Python call in it that
 * goes on until end_ns. */
static void end_until(struct writer *w, uint64_t track, uint64_t parent, uint64_t end_ns)
{
	while (w->open.nr) {
		const struct open *top = &w->open.items[w->open.nr - 1];

		if (top->who == parent || ((top->who & PYTHON) && top->end_ns >= end_ns))
			break;
		end_slice(w, track);
	}
}

static void begin_slice(struct writer *w, const struct perfetto_event *e, uint64_t end_ns,
			uint64_t who)
{
	perfetto__event(w->p, e);
	if (vec_push(&w->open, ((struct open){end_ns, who})))
		w->err = -ENOMEM;
}

static const char *stack_text(struct writer *w, const struct tl_stack *s)
{
	const uint64_t *known = hash__find(&w->stacks, s->id);
	const char *kept;

	if (known)
		return (const char *)(uintptr_t)*known;
	buf__clear(&w->text);
	stack_text_all(&w->text, w->t->recording, s);
	kept = perfetto__keep(w->p, w->text.bytes ? w->text.bytes : "");
	if (hash__set(&w->stacks, s->id, (uintptr_t)kept))
		w->err = -ENOMEM;
	return kept;
}

static void op_flows(struct writer *w, struct perfetto_event *e, uint32_t i)
{
	if (flow_begins(&w->flow, i))
		e->flows[e->flows_nr++] = perfetto_number(PERFETTO_OF_BACKWARD, i);
	if (flow_ends(w->t, &w->flow, i))
		e->flows[e->flows_nr++] =
			perfetto_number(PERFETTO_OF_BACKWARD, w->t->ops.items[i].forward);
}

static struct perfetto_event op_event(struct writer *w, uint32_t i)
{
	const struct tl_op *op = &w->t->ops.items[i];
	const struct tl_op *sequenced = timeline__sequenced_op(w->t, i);
	struct perfetto_event e = {
		.type = PERFETTO_BEGIN,
		.track = perfetto_number(PERFETTO_OF_THREAD, op->thread),
		.time_ns = op->start_ns,
		.category = op->scope == GP_SCOPE_USER ? "user_annotation" : "cpu_op",
		.name = op->name,
	};

	if (*op->overload)
		perfetto_text(&e, "Overload", op->overload);
	if (op->inputs != TL_NONE)
		perfetto_text(&e, "Input Dims", w->t->inputs.items[op->inputs].shapes);
	if (sequenced->sequence_nr >= 0) {
		perfetto_i64(&e, "Sequence number", sequenced->sequence_nr);
		perfetto_u64(&e, "Fwd thread id", sequenced->forward_thread);
	}
	if (op->flags & GP_OP_EXCEPTION)
		perfetto_text(&e, "finished", "false");
	op_flows(w, &e, i);
	return e;
}

static void put_op(struct writer *w, uint32_t i, bool async)
{
	const struct tl_op *op = &w->t->ops.items[i];
	const struct tl_stack stack = timeline__stack(w->t, op->stack_id, i);
	struct perfetto_event e = op_event(w, i);

	if (stack.nr)
		perfetto_text(&e, stack.is_forward ? "Forward call stack" : "Call stack",
			      stack_text(w, &stack));
	if (async)
		e.track = perfetto_number(PERFETTO_OF_ASYNC, i);
	begin_slice(w, &e, op->end_ns, i);
	if (async && !w->err)
		end_slice(w, e.track);
}

static const char *call_name(struct writer *w, const struct tl_python_call *call)
{
	buf__clear(&w->text);
	stack_text_call(&w->text, w->t, call);
	return perfetto__keep(w->p, w->text.bytes ? w->text.bytes : "");
}

/* The Python calls that begin with this op, outermost first. */
static void begin_calls(struct writer *w, const struct tl_op *op)
{
	const struct tl_python_call *calls = w->t->python_calls.items;
	uint32_t chain[GP_STACK_FRAMES], nr = 0;

	for (uint32_t c = op->python_call; c != TL_NONE && !w->begun[c] && nr < GP_STACK_FRAMES;
	     c = calls[c].parent)
		chain[nr++] = c;
	while (nr-- > 0 && !w->err) {
		const struct tl_python_call *call = &calls[chain[nr]];
		struct perfetto_event e = {
			.type = PERFETTO_BEGIN,
			.track = perfetto_number(PERFETTO_OF_THREAD, op->thread),
			.time_ns = call->start_ns,
			.category = "python_function",
			.name = call_name(w, call),
		};

		perfetto_text(&e, "Bounds", tl_call_bounds(w->t));
		w->begun[chain[nr]] = true;
		begin_slice(w, &e, call->end_ns, PYTHON | chain[nr]);
	}
}

/* It need not nest with others of its thread, so it has a row of its own. */
static void put_async(struct writer *w, uint32_t i)
{
	const struct tl_op *op = &w->t->ops.items[i];
	const struct perfetto_track track = {
		.uuid = perfetto_number(PERFETTO_OF_ASYNC, i),
		.parent = perfetto_number(PERFETTO_OF_PROCESS,
					  w->t->threads.items[op->thread].process),
		.name = op->name,
	};

	perfetto__track(w->p, &track);
	put_op(w, i, true);
}

static void put_call(struct writer *w, uint32_t i)
{
	const struct tl_api *api = &w->t->gpu.api.items[i];
	uint32_t process = w->t->threads.items[api->thread].process;
	struct perfetto_event e = {
		.type = PERFETTO_BEGIN,
		.track = perfetto_number(PERFETTO_OF_THREAD, api->thread),
		.time_ns = api->start_ns,
		.category = api->flags & GP_API_DRIVER ? "cuda_driver" : "cuda_runtime",
		.name = api->name,
	};

	if (api->flags & GP_API_OVERHEAD)
		e.category = "overhead";

	if (api->correlation_id) {
		perfetto_u64(&e, "cbid", api->cbid);
		perfetto_u64(&e, "correlation", tl_call_id(process, api->correlation_id));
	}
	if (api->gpu_nr)
		e.flows[e.flows_nr++] = perfetto_launch_flow(process, api->correlation_id);
	begin_slice(w, &e, api->end_ns, CALL | i);
}

static uint64_t parent_of_call(const struct tl_api *api)
{
	return api->parent != TL_NONE ? CALL | api->parent : api->op;
}

/* Whether the call comes before the op in its thread: an op that begins with a call holds it. */
static bool call_is_next(const struct timeline *t, uint32_t call, uint32_t op, uint32_t thread)
{
	const struct tl_api *api = call < t->gpu.api.nr ? &t->gpu.api.items[call] : NULL;
	const struct tl_op *o = op < t->ops.nr ? &t->ops.items[op] : NULL;

	if (!api || api->thread != thread)
		return false;
	return !o || o->thread != thread || api->start_ns < o->start_ns ||
	       (api->start_ns == o->start_ns && api->end_ns <= o->start_ns && api->op != op);
}

/* Both lists are sorted by thread and start. */
static void put_thread(struct writer *w, uint32_t thread, uint32_t *op, uint32_t *call)
{
	const struct timeline *t = w->t;
	uint64_t track = perfetto_number(PERFETTO_OF_THREAD, thread);

	while (!w->err) {
		if (call_is_next(t, *call, *op, thread)) {
			end_until(w, track, parent_of_call(&t->gpu.api.items[*call]),
				  t->gpu.api.items[*call].end_ns);
			put_call(w, (*call)++);
		} else if (*op < t->ops.nr && t->ops.items[*op].thread == thread) {
			if (t->ops.items[*op].flags & GP_OP_ASYNC) {
				put_async(w, (*op)++);
				continue;
			}
			end_until(w, track, t->ops.items[*op].parent, t->ops.items[*op].end_ns);
			begin_calls(w, &t->ops.items[*op]);
			put_op(w, (*op)++, false);
		} else {
			break;
		}
	}
	end_until(w, track, TL_NONE, UINT64_MAX);
}

static void put_threads(struct writer *w)
{
	uint32_t op = 0, call = 0;

	for (uint32_t i = 0; i < w->t->threads.nr && !w->err; i++)
		put_thread(w, i, &op, &call);
}

/* On rows of their own, since some cross what is on their thread's. */
static void put_gcs(struct writer *w)
{
	for (size_t i = 0; i < w->t->python_gcs.nr && !w->err; i++) {
		const struct tl_python_gc *gc = &w->t->python_gcs.items[i];
		struct perfetto_event e = {
			.type = PERFETTO_BEGIN,
			.track = perfetto_number(PERFETTO_OF_GC, gc->thread),
			.time_ns = gc->start_ns,
			.category = "python_function",
			.name = "Python GC",
		};
		const struct perfetto_track track = {
			.uuid = e.track,
			.parent = perfetto_number(PERFETTO_OF_THREAD, gc->thread),
			.name = e.name,
		};

		if (is_new(w, e.track))
			perfetto__track(w->p, &track);
		perfetto_i64(&e, "Generation", gc->generation);
		perfetto_i64(&e, "Collected", gc->collected);
		begin_slice(w, &e, gc->end_ns, TL_NONE);
		if (!w->err)
			end_slice(w, e.track);
	}
}

/* ---- memory ---- */

static void memory_track(struct writer *w, const struct memory_device *d, uint64_t uuid)
{
	char device[MEMORY_NAME_BYTES], name[96];
	const struct perfetto_track track = {
		.uuid = uuid,
		.parent = d->process == TL_NONE ? 0
						: perfetto_number(PERFETTO_OF_PROCESS, d->process),
		.name = name,
		.is_counter = true,
	};

	memory_device_name(d->type, d->index, device);
	(void)snprintf(name, sizeof(name), "%s memory allocated since the capture began", device);
	perfetto__track(w->p, &track);
}

static void put_memory(struct writer *w)
{
	struct memory_usage usage;

	w->err = memory_usage__init(&usage, w->t);
	for (size_t i = 0; i < usage.devices.nr && !w->err; i++) {
		const struct memory_device *d = &usage.devices.items[i];
		struct perfetto_event e = {.type = PERFETTO_COUNTER,
					   .track = perfetto_number(PERFETTO_OF_MEMORY, i)};

		memory_track(w, d, e.track);
		for (size_t k = 0; k < d->events.nr; k++) {
			const struct tl_memory *m = &w->t->memory.items[d->events.items[k]];

			e.time_ns = m->time_ns;
			e.value = m->total_bytes;
			perfetto__event(w->p, &e);
		}
	}
	memory_usage__done(&usage);
}

/* ---- the whole ---- */

static void put_names(struct writer *w)
{
	for (size_t i = 0; i < w->t->processes.nr; i++) {
		const struct tl_process *p = &w->t->processes.items[i];

		perfetto__track(w->p, &(struct perfetto_track){
					      .uuid = perfetto_number(PERFETTO_OF_PROCESS, i),
					      .name = p->comm,
					      .is_process = true,
					      .pid = p->row_pid,
					      .cmdline = p->cmdline,
				      });
	}
	for (size_t i = 0; i < w->t->threads.nr; i++) {
		const struct tl_thread *th = &w->t->threads.items[i];

		perfetto__track(w->p,
				&(struct perfetto_track){
					.uuid = perfetto_number(PERFETTO_OF_THREAD, i),
					.parent = perfetto_number(PERFETTO_OF_PROCESS, th->process),
					.name = th->comm,
					.is_thread = true,
					.pid = w->t->processes.items[th->process].row_pid,
					.tid = th->tid,
				});
	}
}

/* Every counter, zeros too, as an instant at the end of the capture. */
static void put_losses(struct writer *w)
{
	struct perfetto_event e = {
		.type = PERFETTO_INSTANT,
		.track = perfetto_number(PERFETTO_OF_LOSSES, 0),
		.time_ns = w->t->end_ns,
		.category = "gpuprof",
		.name = "losses",
	};

	perfetto__track(w->p, &(struct perfetto_track){.uuid = e.track, .name = "gpuprof: losses"});
	for (size_t i = 0; i < w->t->losses.nr; i++) {
		perfetto_u64(&e, w->t->losses.items[i].name, w->t->losses.items[i].count);
		if (e.args_nr < PERFETTO_ARGS_MAX && i + 1 < w->t->losses.nr)
			continue;
		perfetto__event(w->p, &e);
		e.args_nr = 0;
	}
}

/* On a row of their own, above all. */
static void put_triggers(struct writer *w)
{
	struct perfetto_event e = {
		.type = PERFETTO_INSTANT,
		.track = perfetto_number(PERFETTO_OF_TRIGGERS, 0),
		.category = "trigger",
	};

	if (!w->t->triggers.nr)
		return;
	perfetto__track(w->p, &(struct perfetto_track){.uuid = e.track, .name = "triggers"});
	for (size_t i = 0; i < w->t->triggers.nr; i++) {
		const struct tl_trigger *x = &w->t->triggers.items[i];

		buf__clear(&w->text);
		buf__printf(&w->text, "%s: ", trigger_name(x));
		trigger_words(&w->text, w->t, x);
		e.time_ns = x->reported.head.time_ns;
		e.name = w->text.bytes;
		perfetto__event(w->p, &e);
	}
}

static int write_all(struct writer *w)
{
	int err = flow_find(w->t, &w->flow);

	if (err)
		return err;
	put_names(w);
	put_threads(w);
	put_gcs(w);
	w->err = w->err ? w->err : perfetto_gpu(w->p, w->t);
	if (!w->err)
		put_memory(w);
	put_triggers(w);
	put_losses(w);
	if (!w->err)
		w->err = perfetto_samples(w->p, w->t);
	err = w->err ? w->err : buf__error(&w->text);
	return err ? err : perfetto__flush(w->p);
}

int output_perfetto(struct sink *s, const struct timeline *t)
{
	struct writer w = {
		.p = perfetto__new(s, t),
		.t = t,
		.begun = calloc(t->python_calls.nr + 1, sizeof(*w.begun)),
	};
	int err = w.p && w.begun ? write_all(&w) : -ENOMEM;

	perfetto__free(w.p);
	free(w.begun);
	hash__done(&w.flow);
	hash__done(&w.tracks);
	hash__done(&w.stacks);
	buf__done(&w.text);
	vec_done(&w.open);
	return err;
}

int output_format_perfetto(struct sink *s, const struct timeline *t,
			   const struct output_request *request)
{
	return output_perfetto(s, t);
}
