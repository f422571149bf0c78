/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Op trees. The ops of a thread are walked in order of entry with a stack of the open ones; every
 * end is cut to lie within what is below it on the stack, so the result nests strictly whatever
 * the events say.
 */
#include "timeline/build.h"

#include <errno.h>
#include <stdlib.h>

#include "base/banned.h"
#include "base/cleanup.h"

/* ---- order ---- */

/* Entry order of two ops that begin at the same time on one thread: by instance, since instances
 * count up; without them the longer one first. */
static int by_entry(const void *a, const void *b)
{
	const struct raw_op *x = *(const struct raw_op *const *)a;
	const struct raw_op *y = *(const struct raw_op *const *)b;

	if (!x->instance != !y->instance)
		return x->instance ? -1 : 1;
	if (x->instance != y->instance)
		return x->instance < y->instance ? -1 : 1;
	if (x->end_ns != y->end_ns)
		return x->end_ns > y->end_ns ? -1 : 1;
	return x < y ? -1 : x > y;
}

static bool same_start(const struct raw_op *a, const struct raw_op *b)
{
	return a->thread == b->thread && a->start_ns == b->start_ns;
}

/* Pointers to the raw ops by (thread, start, entry); the caller frees. */
static int order_ops(const struct build *b, const struct raw_op ***ret_order)
{
	CLEANUP(cleanup_free) struct sort_item *items = malloc((b->ops.nr + 1) * sizeof(*items));
	CLEANUP(cleanup_free)
	const struct raw_op **order = malloc((b->ops.nr + 1) * sizeof(*order));
	size_t nr = b->ops.nr, end;
	int err;

	if (!items || !order)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++)
		items[i] = (struct sort_item){b->ops.items[i].start_ns, (uint32_t)i};
	err = sort_items(items, nr);
	if (err)
		return err;
	for (size_t i = 0; i < nr; i++)
		items[i].key = b->ops.items[items[i].index].thread;
	err = sort_items(items, nr);
	if (err)
		return err;
	for (size_t i = 0; i < nr; i++)
		order[i] = &b->ops.items[items[i].index];
	for (size_t i = 0; i < nr; i = end) {
		for (end = i + 1; end < nr && same_start(order[i], order[end]); end++)
			;
		if (end - i > 1)
			qsort(order + i, end - i, sizeof(*order), by_entry);
	}
	*ret_order = TAKE(order);
	return 0;
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

/* Takes the ops above `depth` off the stack. Those that claim to go on end now: of an op that an
 * exception left that is the best bound; of others it is a repair. */
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

/* Probes and callbacks see the same stack, each without the other's ops. */
static bool holds_other_source(const struct tl_op *open, const struct tl_op *op)
{
	return ((open->flags ^ op->flags) & GP_OP_CALLBACK) && open->end_ns > op->start_ns &&
	       (open->end_ns >= op->end_ns || has_bound(op));
}

/* Closes what is above the op's parent. False if that is not open. */
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
	n->b->err = vec_push(&n->b->missing, ((struct sort_item){parent, index}));
	return false;
}

/* The rule where no instance tells: a parent began before and has not ended. Ops whose end is only
 * a bound give way to an op that does not fit into them, or that had no parent at its entry. */
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

static struct tl_op op_of(const struct build *b, const struct raw_op *raw)
{
	const struct tl_name *name = &b->names.items[raw->name];

	return (struct tl_op){
		.start_ns = raw->start_ns,
		.end_ns = raw->end_ns,
		.instance = raw->instance,
		.name = name->name,
		.overload = name->overload,
		.thread = raw->thread,
		.parent = TL_NONE,
		.module_call = TL_NONE,
		.python_call = raw->same_calls, /* until build_python_calls() */
		.scope = raw->scope,
		.stack_id = raw->stack_id,
		.flags = raw->flags,
		.inputs = raw->inputs,
		.unlisted = name->unlisted,
		.thread_number = raw->thread_number,
		.sequence_nr = raw->sequence_nr,
		.forward_thread = raw->forward_thread,
	};
}

/* `parents` gets each op's parent instance. */
static int nest_ops(struct build *b, const struct raw_op **order, uint64_t *parents)
{
	CLEANUP(cleanup_free) uint32_t *stack = malloc((b->ops.nr + 1) * sizeof(*stack));
	struct nest n = {.b = b, .stack = stack};
	int err = vec_reserve(&b->t->ops, b->ops.nr);

	if (err || !stack)
		return -ENOMEM;
	n.ops = b->t->ops.items;
	for (uint32_t i = 0; i < b->ops.nr && !b->err; i++) {
		n.ops[i] = op_of(b, order[i]);
		parents[i] = order[i]->parent;
		if (i && n.ops[i].thread != n.ops[i - 1].thread)
			n.depth = 0;
		if (!(n.ops[i].flags & GP_OP_ASYNC))
			place(&n, i, parents[i]);
	}
	b->t->ops.nr = b->ops.nr;
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
 * torch.profiler's removal of duplicates, on the tree as it sees it, without the names it leaves
 * out. One pass from parents to children suffices: a removal changes the only child's children
 * alone, and they come later. An API call is a child there.
 */
int build_collapse(struct build *b)
{
	struct timeline *t = b->t;
	CLEANUP(cleanup_free) uint32_t *heir = malloc((t->ops.nr + 1) * sizeof(*heir));
	CLEANUP(cleanup_free) uint32_t *children = calloc(t->ops.nr + 1, sizeof(*children));

	if (!heir || !children)
		return -ENOMEM;
	/* heir: the op itself, or what stands for it where it is left out. */
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
	CLEANUP(cleanup_free) const struct raw_op **order = NULL;
	CLEANUP(cleanup_free) uint64_t *parents = malloc((b->ops.nr + 1) * sizeof(*parents));
	int err = parents ? order_ops(b, &order) : -ENOMEM;

	if (!err)
		err = nest_ops(b, order, parents);
	vec_done(&b->ops);
	if (!err)
		err = build_steps(b, &parents);
	if (err)
		return err;
	self_times(b->t);
	return build_instances(b, parents);
}
