/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Two successive operators of a thread were called from stacks that share their outermost frames.
 * The function in which the stacks part shows from where to where the thread went: in one call of
 * it, or, if the second place lies before the first one, perhaps in two.
 */
#include "timeline/build/op_gaps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "base/cleanup.h"
#include "base/vec.h"

struct stack {
	const uint32_t *frames; /* innermost first */
	size_t nr;
};

/* A stack without its outermost frames cannot be compared. */
static bool whole_stack(const struct timeline *t, uint32_t id, struct stack *ret_stack)
{
	uint32_t flags;

	ret_stack->frames = id ? recording__stack(t->recording, id, &ret_stack->nr, &flags) : NULL;
	return ret_stack->frames && ret_stack->nr && !flags;
}

static bool same_function(const struct timeline *t, uint32_t a, uint32_t b)
{
	struct recording_frame f = recording__frame(t->recording, a);
	struct recording_frame g = recording__frame(t->recording, b);

	return f.kind == g.kind && !strcmp(f.function, g.function) && !strcmp(f.file, g.file);
}

/* Finds the two places of the innermost function that both stacks have. False: none. */
static bool common_function(const struct timeline *t, const struct stack *a, const struct stack *b,
			    uint32_t ret_frames[2])
{
	size_t i = a->nr, k = b->nr;

	while (i && k && a->frames[i - 1] == b->frames[k - 1]) {
		i--;
		k--;
	}
	if (i && k && same_function(t, a->frames[i - 1], b->frames[k - 1])) {
		ret_frames[0] = a->frames[i - 1];
		ret_frames[1] = b->frames[k - 1];
		return true;
	}
	if (i == a->nr)
		return false;
	ret_frames[0] = ret_frames[1] = a->frames[i];
	return true;
}

/* What the thread did last, and when that ended. */
struct last {
	uint32_t thread;
	uint32_t stack_id;
	uint64_t end_ns;
};

static bool has_pause(const struct timeline *t, const struct tl_gap *gap)
{
	for (size_t i = 0; i < t->pauses.nr; i++)
		if (t->pauses.items[i].cpu && t->pauses.items[i].start_ns < gap->end_ns &&
		    t->pauses.items[i].end_ns > gap->start_ns)
			return true;
	return false;
}

static int add_gap(const struct timeline *t, const struct last *last, const struct tl_op *op,
		   struct tl_gaps *gaps)
{
	struct tl_gap gap = {
		.start_ns = last->end_ns, .end_ns = op->start_ns, .thread = op->thread};
	struct stack before, after;

	if (last->thread != op->thread || gap.end_ns <= gap.start_ns ||
	    !whole_stack(t, last->stack_id, &before) || !whole_stack(t, op->stack_id, &after) ||
	    !common_function(t, &before, &after, gap.frames) || has_pause(t, &gap))
		return 0;
	return vec_push(gaps, gap);
}

static bool is_range(const struct tl_op *op)
{
	return op->scope == GP_SCOPE_USER;
}

int op_gaps_find(const struct timeline *t, struct tl_gaps *gaps)
{
	CLEANUP(cleanup_free) bool *inner = calloc(t->ops.nr + 1, sizeof(*inner));
	struct last last = {.thread = TL_NONE};
	int err = inner ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < t->ops.nr && !err; i++) {
		const struct tl_op *op = &t->ops.items[i];

		if (op->parent != TL_NONE)
			inner[i] = inner[op->parent] || !is_range(&t->ops.items[op->parent]);
		if (inner[i] || op->step || (op->flags & GP_OP_ASYNC))
			continue;
		err = add_gap(t, &last, op, gaps);
		last = (struct last){.thread = op->thread,
				     .stack_id = op->stack_id,
				     .end_ns = is_range(op) ? op->start_ns : op->end_ns};
	}
	return err;
}
