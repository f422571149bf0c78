/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Finds calls of Python functions. Each op reports how many frames of its stack belong to the same
 * calls as in the op before it on its thread; its other frames are calls that begin with it. A call
 * needs an operator that began in it: annotations alone make none, as what opens them is over at
 * once. Nothing is assumed to go on where instances are missing.
 */
#include "timeline/model/build.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"

/* Limits on calls open at a time, and on all calls: no honest recording has more. */
#define OPEN_MAX  GP_STACK_FRAMES
#define CALLS_MAX (1U << 24)

enum frame_kind { FRAME_OTHER = 0, FRAME_MODULE = 1, FRAME_INNER_MODULE = 2 };

struct open_call {
	uint64_t first;	    /* instance of its first op */
	uint64_t second_ns; /* begin of its second op, 0: none yet */
	uint64_t end_ns;
	uint32_t call;	/* of timeline.python_calls */
	uint32_t under; /* the op in which it began, or TL_NONE */
	bool has_op;
};

struct caller {
	struct build *b;
	struct timeline *t;
	struct hash kind_of;	       /* frame -> enum frame_kind */
	uint32_t thread, step, parent; /* of the last op */
	uint64_t instance;
	uint32_t last; /* that op, TL_NONE: there is none, or it is asynchronous */
	bool *gone;    /* calls that are none */
	size_t gone_room;
	uint32_t open_nr;
	struct open_call open[OPEN_MAX];
};

/* ---- closing ---- */

/* Finds what began in the call and holds the op `next` (TL_NONE: none), which is no longer in it;
 * the last thing to begin there does not count. TL_NONE: nothing. */
static uint32_t outliving(const struct caller *c, const struct open_call *o, uint32_t next)
{
	const struct tl_op *ops = c->t->ops.items;
	uint32_t around = next == TL_NONE ? TL_NONE : ops[next].parent;

	while (around != TL_NONE && (ops[around].step || around == c->last))
		around = ops[around].parent;
	if (around == TL_NONE || ops[around].instance < o->first ||
	    ops[around].instance >> 32 != o->first >> 32)
		return TL_NONE;
	return around;
}

/* Shortens a call that something in it outlives: its end is not known. If that was the first thing
 * in it, the rest lies within that thing. False: the call is not shown. */
static bool trim(struct caller *c, const struct open_call *o, uint32_t next)
{
	uint32_t op = outliving(c, o, next);

	if (!o->has_op || op == TL_NONE)
		return o->has_op;
	if (c->t->ops.items[op].instance != o->first || !o->second_ns) {
		c->b->python_calls.crossing_nr++;
		return false;
	}
	c->t->python_calls.items[o->call].start_ns = o->second_ns;
	c->t->ops.items[op].python_call = c->t->python_calls.items[o->call].parent;
	return true;
}

static void close_calls(struct caller *c, uint32_t nr, uint32_t next)
{
	while (c->open_nr > nr) {
		struct open_call *o = &c->open[--c->open_nr];
		struct open_call *around = c->open_nr ? o - 1 : NULL;

		c->gone[o->call] = !trim(c, o, next);
		c->t->python_calls.items[o->call].end_ns = o->end_ns;
		if (!around)
			continue;
		around->has_op = around->has_op || o->has_op;
		if (around->end_ns < o->end_ns)
			around->end_ns = o->end_ns;
	}
}

/* Counts the calls that stay whole when what they began in ends. */
static uint32_t still_inside(const struct caller *c, const struct tl_op *op)
{
	uint32_t nr = 0;

	while (nr < c->open_nr && (c->open[nr].under == TL_NONE ||
				   c->t->ops.items[c->open[nr].under].end_ns > op->start_ns))
		nr++;
	return nr;
}

static uint32_t step_of(const struct timeline *t, uint32_t op)
{
	while (op != TL_NONE && !t->ops.items[op].step)
		op = t->ops.items[op].parent;
	return op;
}

/* Counts the open calls that the op is in. Steps that were found are not part of the program: in
 * each of them calls are shown anew. */
static uint32_t shared(struct caller *c, const struct tl_op *op, uint32_t same_nr)
{
	uint32_t nr = same_nr < c->open_nr ? same_nr : c->open_nr, step = c->step, inside;

	if (op->thread != c->thread || op->instance != c->instance + 1) {
		c->b->python_calls.cut_nr += nr && op->instance >> 32 == c->instance >> 32;
		step = step_of(c->t, op->parent);
		nr = 0;
	} else if (op->parent != c->parent) {
		step = step_of(c->t, op->parent);
		nr = step == c->step ? nr : 0;
		inside = nr ? still_inside(c, op) : 0;
		c->b->python_calls.cut_nr += inside < nr;
		nr = inside < nr ? inside : nr;
	}
	c->step = step;
	c->parent = op->parent;
	c->thread = op->thread;
	c->instance = op->instance;
	return nr;
}

/* ---- modules ---- */

static bool ends_in(const char *text, const char *end)
{
	size_t nr = strlen(text), end_nr = strlen(end);

	return nr >= end_nr && !strcmp(text + nr - end_nr, end);
}

/* PyTorch 2.1 wrapped the earlier function in another one. */
static enum frame_kind look_at(const struct recording_frame *f)
{
	if (!ends_in(f->file, "/torch/nn/modules/module.py"))
		return FRAME_OTHER;
	if (ends_in(f->function, "_wrapped_call_impl"))
		return FRAME_MODULE;
	return ends_in(f->function, "_call_impl") ? FRAME_INNER_MODULE : FRAME_OTHER;
}

static enum frame_kind kind_of(struct caller *c, uint32_t frame)
{
	const uint64_t *known = hash__find(&c->kind_of, frame);
	struct recording_frame f;
	enum frame_kind kind;

	if (known)
		return (enum frame_kind) * known;
	f = recording__frame(c->t->recording, frame);
	kind = look_at(&f);
	if (hash__set(&c->kind_of, frame, kind))
		c->b->err = -ENOMEM;
	return kind;
}

/* Finds the calls of modules that the op is in, outermost first. */
static uint32_t chain_of(const struct timeline *t, uint32_t call, uint32_t chain[GP_MODULE_DEPTH])
{
	uint32_t nr = call == TL_NONE ? 0 : t->module_calls.items[call].depth + 1;

	for (uint32_t i = nr; i-- > 0; call = t->module_calls.items[call].parent)
		chain[i] = call;
	return nr;
}

/* Matches the op's calls with those of modules: in the same order, if their numbers agree. */
static void place_modules(struct caller *c, const struct tl_op *op, const uint32_t *frames)
{
	uint32_t chain[GP_MODULE_DEPTH], calls[GP_MODULE_DEPTH], nr = 0;
	uint32_t chain_nr = chain_of(c->t, op->module_call, chain);
	enum frame_kind kind, last = FRAME_OTHER;

	for (uint32_t i = 0; i < c->open_nr && chain_nr; i++, last = kind) {
		kind = kind_of(c, frames[c->open_nr - 1 - i]);
		if (kind == FRAME_OTHER || (kind == FRAME_INNER_MODULE && last == FRAME_MODULE))
			continue;
		if (nr == chain_nr)
			return;
		calls[nr++] = c->open[i].call;
	}
	for (uint32_t i = 0; i < nr && nr == chain_nr; i++)
		c->t->python_calls.items[calls[i]].module_call = chain[i];
}

/* ---- opening ---- */

static int open_call(struct caller *c, const struct tl_op *op, uint32_t frame)
{
	const struct tl_python_call call = {
		.start_ns = op->start_ns,
		.end_ns = op->start_ns,
		.thread = op->thread,
		.parent = c->open_nr ? c->open[c->open_nr - 1].call : TL_NONE,
		.frame = frame,
		.module_call = TL_NONE,
	};

	c->open[c->open_nr++] = (struct open_call){
		.first = op->instance,
		.end_ns = op->start_ns,
		.call = (uint32_t)c->t->python_calls.nr,
		.under = op->parent,
	};
	if (c->t->python_calls.nr == c->gone_room) {
		size_t room = 2 * c->gone_room + 1024;
		bool *gone = realloc(c->gone, room * sizeof(*gone));

		if (!gone)
			return -ENOMEM;
		c->gone = gone;
		c->gone_room = room;
	}
	return vec_push(&c->t->python_calls, call);
}

/* Notes that the op begins in the innermost call. */
static void add_op(struct caller *c, uint32_t index)
{
	const struct tl_op *op = &c->t->ops.items[index];

	if (op->flags & GP_OP_ASYNC)
		return;
	c->last = index;
	if (op->scope != GP_SCOPE_USER && !op->unlisted)
		c->open[c->open_nr - 1].has_op = true;
}

/* Extends the call in which it ends: the innermost one that it began in and that is still open. */
static void end_op(struct caller *c, const struct tl_op *op)
{
	for (uint32_t i = c->open_nr; i-- > 0;) {
		struct open_call *o = &c->open[i];

		if (o->first > op->instance || o->first >> 32 != op->instance >> 32)
			continue;
		if (o->end_ns < op->end_ns)
			o->end_ns = op->end_ns;
		break;
	}
}

/* Closes the calls that are over before the next op, which lies in `around` (TL_NONE: in none). */
static void end_ops(struct caller *c, uint32_t around)
{
	const struct tl_op *ops = c->t->ops.items;

	for (uint32_t op = c->last; op != TL_NONE && op != around; op = ops[op].parent) {
		while (around != TL_NONE && ops[around].depth > ops[op].depth)
			around = ops[around].parent;
		if (op == around)
			break;
		end_op(c, &ops[op]);
	}
}

static int take_op(struct caller *c, uint32_t index)
{
	struct tl_op *op = &c->t->ops.items[index];
	uint32_t same_calls = op->python_call, was_nr;
	size_t nr = 0;
	const uint32_t *frames = recording__stack(c->t->recording, op->stack_id, &nr, NULL);
	int err = 0;

	op->python_call = TL_NONE;
	if (!same_calls || !frames || nr > OPEN_MAX || c->t->python_calls.nr + nr > CALLS_MAX) {
		c->b->python_calls.unknown_nr += op->stack_id && (op->flags & GP_OP_CALLBACK);
		same_calls = 1;
		nr = 0;
	}
	end_ops(c, op->parent);
	was_nr = shared(c, op, same_calls - 1);
	close_calls(c, was_nr < nr ? was_nr : (uint32_t)nr, index);
	c->last = TL_NONE;
	for (uint32_t i = c->open_nr; i-- > 0 && !c->open[i].second_ns;)
		c->open[i].second_ns = op->start_ns;
	was_nr = c->open_nr;
	while (c->open_nr < nr && !err)
		err = open_call(c, op, frames[nr - 1 - c->open_nr]);
	if (err || !nr)
		return err;
	if (was_nr < nr)
		place_modules(c, op, frames);
	op->python_call = c->open[nr - 1].call;
	add_op(c, index);
	return c->b->err;
}

/* ---- the whole ---- */

/* Removes calls that are none, and gives what is in them to the call around. `place` and
 * `has_module` have room for all calls of Python functions and of modules. */
static void compact(struct caller *c, uint32_t *place, bool *has_module)
{
	struct timeline *t = c->t;
	uint32_t nr = 0;

	for (uint32_t i = 0; i < t->python_calls.nr; i++) {
		struct tl_python_call call = t->python_calls.items[i];

		if (call.parent != TL_NONE)
			call.parent = place[call.parent];
		place[i] = c->gone[i] ? call.parent : nr;
		if (c->gone[i])
			continue;
		if (call.module_call != TL_NONE)
			has_module[call.module_call] = true;
		t->python_calls.items[nr++] = call;
	}
	t->python_calls.nr = nr;
	for (size_t i = 0; i < t->ops.nr; i++)
		if (t->ops.items[i].python_call != TL_NONE)
			t->ops.items[i].python_call = place[t->ops.items[i].python_call];
	for (size_t i = 0; i < t->module_calls.nr; i++)
		c->b->python_calls.unplaced_nr += !has_module[i];
}

static int find_calls(struct caller *c)
{
	struct timeline *t = c->t;
	uint32_t *place;
	bool *has_module;
	int err = 0;

	for (size_t i = 0; i < t->ops.nr && !err; i++)
		err = take_op(c, c->b->tree.by_instance[i].index);
	end_ops(c, TL_NONE);
	close_calls(c, 0, TL_NONE);
	if (err)
		return err;
	place = malloc((t->python_calls.nr + 1) * sizeof(*place));
	has_module = calloc(t->module_calls.nr + 1, sizeof(*has_module));
	if (place && has_module)
		compact(c, place, has_module);
	else
		err = -ENOMEM;
	free(place);
	free(has_module);
	return err;
}

/* Makes calls of modules alone. */
static int take_module_calls(struct timeline *t)
{
	for (uint32_t i = 0; i < t->module_calls.nr; i++) {
		const struct tl_module_call *m = &t->module_calls.items[i];
		const struct tl_python_call call = {
			.start_ns = m->start_ns,
			.end_ns = m->end_ns,
			.thread = m->thread,
			.parent = m->parent,
			.frame = TL_NONE,
			.module_call = i,
		};

		if (vec_push(&t->python_calls, call))
			return -ENOMEM;
	}
	for (size_t i = 0; i < t->ops.nr; i++)
		t->ops.items[i].python_call = t->ops.items[i].module_call;
	return 0;
}

int build_python_calls(struct build *b)
{
	struct caller *c;
	int err;

	if (!b->python_calls.any)
		return take_module_calls(b->t);
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->b = b;
	c->t = b->t;
	c->thread = c->step = c->parent = c->last = TL_NONE;
	err = find_calls(c);
	hash__done(&c->kind_of);
	free(c->gone);
	free(c);
	return err;
}
