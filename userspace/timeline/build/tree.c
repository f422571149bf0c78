/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Builds op trees. Walks the ops of a thread in order of entry, with a stack of the open ones. Cuts
 * every end so that it lies within the op below on the stack: the result nests strictly, whatever
 * the events say.
 */
#include "timeline/model/build.h"

#include <errno.h>
#include <stdlib.h>

#include "base/banned.h"
#include "base/cleanup.h"

/* ---- order ---- */

/* Orders two ops that begin at the same time on one thread: by instance, as instances count up;
 * without instances the longer one first. */
static int by_entry(const void *a, const void *b, void *ops)
{
	uint32_t i = ((const struct sort_item *)a)->index;
	uint32_t j = ((const struct sort_item *)b)->index;
	const struct tl_op *x = (const struct tl_op *)ops + i, *y = (const struct tl_op *)ops + j;

	if (!x->instance != !y->instance)
		return x->instance ? -1 : 1;
	if (x->instance != y->instance)
		return x->instance < y->instance ? -1 : 1;
	if (x->end_ns != y->end_ns)
		return x->end_ns > y->end_ns ? -1 : 1;
	return i < j ? -1 : i > j;
}

static bool same_start(const struct tl_op *a, const struct tl_op *b)
{
	return a->thread == b->thread && a->start_ns == b->start_ns;
}

/* Computes which op comes to each place so that they stand by (thread, start, entry). The caller
 * frees. */
static int order_ops(const struct timeline *t, struct sort_item **ret_order)
{
	size_t nr = t->ops.nr, end;
	CLEANUP(cleanup_free) struct sort_item *order = malloc((nr + 1) * sizeof(*order));
	struct tl_op *ops = t->ops.items;
	int err;

	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++)
		order[i] = (struct sort_item){ops[i].start_ns, (uint32_t)i};
	err = sort_items(order, nr);
	if (err)
		return err;
	for (size_t i = 0; i < nr; i++)
		order[i].key = ops[order[i].index].thread;
	err = sort_items(order, nr);
	if (err)
		return err;
	for (size_t i = 0; i < nr; i = end) {
		for (end = i + 1;
		     end < nr && same_start(&ops[order[i].index], &ops[order[end].index]); end++)
			;
		if (end - i > 1)
			qsort_r(order + i, end - i, sizeof(*order), by_entry, ops);
	}
	*ret_order = TAKE(order);
	return 0;
}

/* Moves ops in place, along the cycles of the permutation: a copy would double the memory of
 * ops. */
static void put_in_order(struct build *b, struct sort_item *order)
{
	struct tl_op *ops = b->t->ops.items, op;
	uint64_t *parents = b->tree.parents.items, parent;
	uint32_t at, from;

	for (uint32_t i = 0; i < b->t->ops.nr; i++) {
		if (order[i].index == i)
			continue;
		op = ops[i];
		parent = parents[i];
		for (at = i; order[at].index != i; at = from) {
			from = order[at].index;
			order[at].index = at;
			ops[at] = ops[from];
			parents[at] = parents[from];
		}
		order[at].index = at;
		ops[at] = op;
		parents[at] = parent;
	}
}

static int sort_ops(struct build *b)
{
	CLEANUP(cleanup_free) struct sort_item *order = NULL;
	int err = order_ops(b->t, &order);

	if (!err)
		put_in_order(b, order);
	return err;
}

/* ---- nesting ---- */

struct nest {
	struct build *b;
	struct tl_op *ops;
	uint32_t *stack; /* open ops, outermost first */
	size_t depth;
};

static bool has_bound(const struct tl_op *op)
{
	return op->flags & GP_OP_EXCEPTION;
}

/* Pops the ops above `depth`. Those that claim to go on end now: for an op that an exception left
 * this is the best bound, for others it is a repair. */
static void close_above(struct nest *n, size_t depth, uint64_t now_ns)
{
	while (n->depth > depth) {
		struct tl_op *top = &n->ops[n->stack[--n->depth]];

		if (top->end_ns <= now_ns)
			continue;
		n->b->counts[TL_NESTING_REPAIRED] += !has_bound(top);
		top->end_ns = now_ns;
	}
}

/* Probes and callbacks see the same stack, but neither sees the other's ops. */
static bool holds_other_source(const struct tl_op *open, const struct tl_op *op)
{
	return ((open->flags ^ op->flags) & GP_OP_CALLBACK) && open->end_ns > op->start_ns &&
	       (open->end_ns >= op->end_ns || has_bound(op));
}

/* Closes what is above the op's parent. False if the parent is not open. */
static bool close_to_parent(struct nest *n, uint32_t index, uint64_t parent)
{
	size_t stop = n->depth > TL_SEARCH_DEPTH ? n->depth - TL_SEARCH_DEPTH : 0;
	const struct tl_op *op = &n->ops[index];

	for (size_t at = n->depth; at-- > stop;) {
		const struct tl_op *open = &n->ops[n->stack[at]];

		if (open->instance != parent)
			continue;
		if (open->end_ns < op->start_ns) {
			n->b->counts[TL_NESTING_REPAIRED]++;
			return false;
		}
		while (n->depth > at + 1 &&
		       !holds_other_source(&n->ops[n->stack[n->depth - 1]], op))
			close_above(n, n->depth - 1, op->start_ns);
		return true;
	}
	n->b->err = vec_push(&n->b->tree.missing, ((struct sort_item){parent, index}));
	return false;
}

/* Finds the parent where no instance tells: it began before and has not ended. Ops whose end is
 * only a bound give way to an op that does not fit into them, or that had no parent at its
 * entry. */
static void close_to_container(struct nest *n, const struct tl_op *op, bool had_parent)
{
	while (n->depth) {
		const struct tl_op *top = &n->ops[n->stack[n->depth - 1]];
		bool fits = op->end_ns <= top->end_ns;

		if (top->end_ns > op->start_ns && (!has_bound(top) || (fits && had_parent)))
			return;
		close_above(n, n->depth - 1, op->start_ns);
	}
}

static void place(struct nest *n, uint32_t index, uint64_t parent)
{
	struct tl_op *op = &n->ops[index];
	const struct tl_op *above;

	if (!parent || !close_to_parent(n, index, parent))
		close_to_container(n, op, parent != 0);
	if (n->depth) {
		op->parent = n->stack[n->depth - 1];
		op->depth = (uint32_t)n->depth;
		above = &n->ops[op->parent];
		if (op->end_ns > above->end_ns) {
			n->b->counts[TL_NESTING_REPAIRED] += !has_bound(op);
			op->end_ns = above->end_ns;
		}
	}
	n->stack[n->depth++] = index;
}

static int nest_ops(struct build *b)
{
	CLEANUP(cleanup_free) uint32_t *stack = malloc((b->t->ops.nr + 1) * sizeof(*stack));
	struct nest n = {.b = b, .ops = b->t->ops.items, .stack = stack};

	if (!stack)
		return -ENOMEM;
	for (uint32_t i = 0; i < b->t->ops.nr && !b->err; i++) {
		if (i && n.ops[i].thread != n.ops[i - 1].thread)
			n.depth = 0;
		if (!(n.ops[i].flags & GP_OP_ASYNC))
			place(&n, i, b->tree.parents.items[i]);
	}
	return b->err;
}

/* ---- what follows from the tree ---- */

static void self_times(struct timeline *t)
{
	for (size_t i = 0; i < t->ops.nr; i++) {
		struct tl_op *op = &t->ops.items[i];

		if (!(op->flags & GP_OP_ASYNC))
			op->self_ns = op->end_ns - op->start_ns;
		if (op->parent != TL_NONE)
			t->ops.items[op->parent].self_ns -= op->end_ns - op->start_ns;
	}
}

/*
 * Removes duplicates as torch.profiler does, on the tree as it sees it: without the names that it
 * leaves out, and with API calls as children. One pass from parents to children suffices: a removal
 * changes only the children of an only child, and they come later.
 */
int build_collapse(struct build *b)
{
	struct timeline *t = b->t;
	CLEANUP(cleanup_free) uint32_t *heir = malloc((t->ops.nr + 1) * sizeof(*heir));
	CLEANUP(cleanup_free) uint32_t *children = calloc(t->ops.nr + 1, sizeof(*children));

	if (!heir || !children)
		return -ENOMEM;
	/* Finds the heir: the op itself, or the one that replaces it where it is left out. */
	for (uint32_t i = 0; i < t->ops.nr; i++) {
		const struct tl_op *op = &t->ops.items[i];
		uint32_t parent = op->parent == TL_NONE ? TL_NONE : heir[op->parent];

		heir[i] = op->unlisted ? parent : i;
		if (!op->unlisted && parent != TL_NONE)
			children[parent]++;
	}
	for (size_t i = 0; i < t->gpu.api.nr; i++) {
		const struct tl_api *api = &t->gpu.api.items[i];

		if (api->op != TL_NONE && api->parent == TL_NONE && heir[api->op] != TL_NONE)
			children[heir[api->op]]++;
	}
	for (uint32_t i = 0; i < t->ops.nr; i++) {
		struct tl_op *op = &t->ops.items[i];
		uint32_t parent = op->parent == TL_NONE ? TL_NONE : heir[op->parent];

		if (op->unlisted) {
			heir[i] = parent;
			continue;
		}
		if (parent == TL_NONE || t->ops.items[parent].name != op->name ||
		    children[parent] != 1)
			continue;
		op->collapsed = true;
		heir[i] = parent;
		children[parent] = children[i];
	}
	return 0;
}

int build_tree(struct build *b)
{
	int err = sort_ops(b);

	if (!err)
		err = nest_ops(b);
	if (!err)
		err = build_steps(b);
	if (err)
		return err;
	self_times(b->t);
	err = build_instances(b);
	vec_done(&b->tree.parents);
	return err;
}
