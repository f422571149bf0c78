/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Finds the forward op whose gradient a backward op computes. Both carry autograd's sequence
 * number, which counts per forward thread. Ops that asked for the number without consuming it carry
 * it too, so the last one to begin counts. PyTorch's thread numbers are not tids.
 */
#include "timeline/model/build.h"

#include <errno.h>
#include <string.h>

#include "base/banned.h"

static uint64_t key_of(const struct timeline *t, const struct tl_op *op, uint64_t thread)
{
	uint64_t process = t->threads.items[op->thread].process;

	return hash_mix((uint64_t)op->sequence_nr ^ hash_mix(thread ^ hash_mix(process + 1)));
}

static bool is_forward(const struct tl_op *op)
{
	return op->sequence_nr >= 0 && !op->forward_thread && op->thread_number &&
	       !(op->flags & GP_OP_ASYNC);
}

static int note_forward(const struct timeline *t, struct hash *forward_of, uint32_t i)
{
	const struct tl_op *op = &t->ops.items[i];
	uint64_t key = key_of(t, op, op->thread_number);
	const uint64_t *known = hash__find(forward_of, key);

	if (known && t->ops.items[*known].start_ns > op->start_ns)
		return 0;
	return hash__set(forward_of, key, i);
}

static uint32_t find_forward(const struct timeline *t, const struct hash *forward_of,
			     const struct tl_op *op)
{
	const uint64_t *known;

	if (!tl_op_is_backward(op))
		return TL_NONE;
	known = hash__find(forward_of, key_of(t, op, op->forward_thread));
	if (!known || t->ops.items[*known].start_ns > op->start_ns)
		return TL_NONE;
	return (uint32_t)*known;
}

/* Counts the Python frames of a stack. If the result cannot be remembered, it is counted again. */
static uint64_t python_frames(const struct timeline *t, struct hash *known_of, uint32_t stack_id)
{
	const uint64_t *known = hash__find(known_of, stack_id);
	const uint32_t *frames;
	uint64_t nr = 0;
	size_t all;

	if (known)
		return *known;
	frames = recording__stack(t->recording, stack_id, &all, NULL);
	for (size_t i = 0; i < all; i++)
		nr += recording__frame(t->recording, frames[i]).kind == RECORDING_FRAME_PYTHON;
	(void)hash__set(known_of, stack_id, nr);
	return nr;
}

/* Decides whose stack to show: what a backward node calls belongs to the node's forward op, unless
 * Python called it within the node (a hook, or the backward() of a Python function). Then its own
 * stack says more. */
static uint32_t inherited(const struct timeline *t, struct hash *python_of, const struct tl_op *op)
{
	const struct tl_op *parent = op->parent == TL_NONE ? NULL : &t->ops.items[op->parent];

	if (!parent || parent->forward == TL_NONE)
		return TL_NONE;
	if (op->stack_id != parent->stack_id &&
	    python_frames(t, python_of, op->stack_id) >
		    python_frames(t, python_of, parent->stack_id))
		return TL_NONE;
	return parent->forward;
}

int build_forward(struct build *b)
{
	struct timeline *t = b->t;
	struct hash forward_of = {0}, python_of = {0};
	int err = 0;

	for (uint32_t i = 0; i < t->ops.nr && !err; i++)
		if (is_forward(&t->ops.items[i]))
			err = note_forward(t, &forward_of, i);
	for (uint32_t i = 0; i < t->ops.nr && !err; i++) {
		struct tl_op *op = &t->ops.items[i];

		op->forward = find_forward(t, &forward_of, op);
		if (op->forward == TL_NONE)
			op->forward = inherited(t, &python_of, op);
	}
	hash__done(&forward_of);
	hash__done(&python_of);
	return err;
}

struct tl_stack timeline__stack(const struct timeline *t, uint32_t own_stack_id, uint32_t op)
{
	struct tl_stack s = {.id = own_stack_id};
	const struct tl_op *o = op == TL_NONE ? NULL : &t->ops.items[op];

	if (o && o->forward != TL_NONE && t->ops.items[o->forward].stack_id) {
		s.id = t->ops.items[o->forward].stack_id;
		s.is_forward = true;
	} else if (o && !s.id) {
		s.id = o->stack_id;
	}
	s.frames = recording__stack(t->recording, s.id, &s.nr, &s.flags);
	return s;
}

static bool ends_with(const char *text, const char *end)
{
	size_t nr = strlen(text), end_nr = strlen(end);

	return nr >= end_nr && !strcmp(text + nr - end_nr, end);
}

/* Functions of record_function() and torch.cuda.nvtx that begin an annotation. */
static bool begins_annotations(const struct recording_frame *f)
{
	static const char *const files[] = {"/torch/_ops.py", "/torch/autograd/profiler.py",
					    "/torch/cuda/nvtx.py"};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (ends_with(f->file, files[i]))
			return true;
	return false;
}

struct tl_stack timeline__stack_inside(const struct timeline *t, uint32_t own_stack_id, uint32_t op)
{
	struct tl_stack s = timeline__stack(t, own_stack_id, op);
	size_t inner = 0;

	if (op == TL_NONE || t->ops.items[op].scope != GP_SCOPE_USER || t->ops.items[op].step ||
	    s.id != t->ops.items[op].stack_id)
		return s;
	for (size_t i = 0; i < s.nr; i++) {
		struct recording_frame f = recording__frame(t->recording, s.frames[i]);

		/* Native frames between them belong to them. */
		if (f.kind != RECORDING_FRAME_PYTHON)
			continue;
		if (!begins_annotations(&f))
			break;
		inner = i + 1;
	}
	if (inner && inner < s.nr) {
		s.frames += inner;
		s.nr -= inner;
	}
	return s;
}

void timeline__heirs(const struct timeline *t, uint32_t *heirs)
{
	for (uint32_t i = 0; i < t->ops.nr; i++) {
		const struct tl_op *op = &t->ops.items[i];
		uint32_t above = op->parent == TL_NONE ? TL_NONE : heirs[op->parent];

		heirs[i] = op->collapsed || op->unlisted ? above : i;
	}
}

const struct tl_op *timeline__sequenced_op(const struct timeline *t, size_t op)
{
	static const char engine[] = "autograd::engine::evaluate_function: ";
	const struct tl_op *outer = &t->ops.items[op], *node = outer + 1;

	if (op + 1 < t->ops.nr && node->parent == op && node->scope == GP_SCOPE_BACKWARD &&
	    outer->sequence_nr < 0 && !strncmp(outer->name, engine, sizeof(engine) - 1))
		return node;
	return outer;
}
