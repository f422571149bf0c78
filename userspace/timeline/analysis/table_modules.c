/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Sums ops by the nn.Module that called them. A module's own numbers are those of the ops directly
 * in its calls, its totals those of all ops in them. An op that computes the gradient of a forward
 * op counts for that op's module, in a row of its own.
 */
#include "timeline/analysis/table_rows.h"

#include <errno.h>
#include <stdlib.h>

#include "base/banned.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "common/saturating.h"

#define OUTSIDE "[no module]"

/* A module; in a tree, a module at one place. */
struct node {
	struct table_row forward, backward;
	uint32_t children, last_child, next; /* nodes, TL_NONE: none */
};

struct modules {
	const struct timeline *t;
	const struct tl_part *only;
	const struct compensation *compensation;
	VEC(struct node) nodes;
	uint32_t *heir;	   /* per op, see timeline__heirs() */
	uint32_t *node_of; /* by call */
	bool *has_backward;
	struct hash place_of; /* node around it and module -> node */
	struct table_row outside;
};

static void modules__done(struct modules *m)
{
	vec_done(&m->nodes);
	free(m->heir);
	free(m->node_of);
	free(m->has_backward);
	hash__done(&m->place_of);
}

/* Whether the table includes this thread. */
static bool is_for(const struct modules *m, uint32_t thread)
{
	return tl_part_has(m->only, &m->t->processes.items[m->t->threads.items[thread].process]);
}

/* ---- nodes ---- */

static int add_node(struct modules *m, uint32_t around, uint32_t module, uint64_t key)
{
	uint32_t at = (uint32_t)m->nodes.nr;
	struct node n = {
		.forward = {.name = m->t->modules.items[module].name, .first_op = TL_NONE},
		.children = TL_NONE,
		.last_child = TL_NONE,
		.next = TL_NONE,
	};
	struct node *parent;

	n.forward.depth = around == TL_NONE ? 0 : m->nodes.items[around].forward.depth + 1;
	n.forward.has_parent = around != TL_NONE;
	n.backward = n.forward;
	n.backward.name = m->t->modules.items[module].backward_name;
	if (vec_push(&m->nodes, n) || hash__set(&m->place_of, key, at))
		return -ENOMEM;
	if (around == TL_NONE)
		return 0;
	parent = &m->nodes.items[around];
	if (parent->children == TL_NONE)
		parent->children = at;
	else
		m->nodes.items[parent->last_child].next = at;
	parent->last_child = at;
	return 0;
}

/* Walks calls in order: the one around a call already has its node. */
static int find_nodes(struct modules *m, bool tree)
{
	const struct timeline *t = m->t;
	int err = 0;

	for (size_t i = 0; i < t->module_calls.nr && !err; i++) {
		const struct tl_module_call *call = &t->module_calls.items[i];
		uint32_t around =
			tree && call->parent != TL_NONE ? m->node_of[call->parent] : TL_NONE;
		uint64_t key = (uint64_t)around << 32 | call->module;
		const uint64_t *known = hash__find(&m->place_of, key);

		if (!known) {
			m->node_of[i] = (uint32_t)m->nodes.nr;
			err = add_node(m, around, call->module, key);
		} else {
			m->node_of[i] = (uint32_t)*known;
		}
	}
	for (size_t i = 0; i < t->module_calls.nr && !err; i++)
		m->nodes.items[m->node_of[i]].forward.calls +=
			is_for(m, t->module_calls.items[i].thread);
	return err;
}

/* ---- ops ---- */

/* Finds the call in which an op counts, and whether it counts as backward. */
static uint32_t call_of(const struct timeline *t, uint32_t op, bool *ret_backward)
{
	const struct tl_op *o = &t->ops.items[op];

	*ret_backward = o->module_call == TL_NONE && o->forward != TL_NONE;
	return *ret_backward ? t->ops.items[o->forward].module_call : o->module_call;
}

static void add_self(const struct modules *m, struct table_row *row, uint32_t index)
{
	const struct tl_op_sums *sums = timeline__op_sums(m->t, index);

	row->self_cpu_ns += (uint64_t)compensation__self_ns(m->compensation, m->t, index);
	row->self_cuda_ns += sums->self_cuda_ns;
	row->self_cpu_bytes = table_plus(row->self_cpu_bytes, sums->self_cpu_bytes);
	row->self_cuda_bytes = table_plus(row->self_cuda_bytes, sums->self_cuda_bytes);
}

/* Adds an op that no other op of the row called. */
static void add_total(const struct modules *m, struct table_row *row, uint32_t index)
{
	const struct tl_op_sums *sums = timeline__op_sums(m->t, index);

	row->cpu_total_ns += (uint64_t)compensation__total_ns(m->compensation, m->t, index);
	row->cuda_total_ns += sums->cuda_ns;
	row->cpu_bytes = table_plus(row->cpu_bytes, sums->cpu_bytes);
	row->cuda_bytes = table_plus(row->cuda_bytes, sums->cuda_bytes);
	row->all_flops = add_saturating(row->all_flops, sums->all_flops);
}

static struct table_row *row_of(struct modules *m, uint32_t call, bool backward)
{
	struct node *n = &m->nodes.items[m->node_of[call]];

	return backward ? &n->backward : &n->forward;
}

static void add_outside(struct modules *m, uint32_t index, bool is_outermost)
{
	add_self(m, &m->outside, index);
	m->outside.flops = add_saturating(m->outside.flops, timeline__op_sums(m->t, index)->flops);
	m->outside.calls += is_outermost;
	if (is_outermost)
		add_total(m, &m->outside, index);
}

static void add_op(struct modules *m, uint32_t index)
{
	const struct timeline *t = m->t;
	const struct tl_op *op = &t->ops.items[index];
	bool backward, parent_backward = false;
	uint32_t call = call_of(t, index, &backward), within = TL_NONE;
	bool inner = true, is_outermost;

	/* Ops that no other table lists are in none of these rows either. */
	if ((op->flags & GP_OP_ASYNC) || m->heir[index] == TL_NONE || !is_for(m, op->thread))
		return;
	is_outermost = op->parent == TL_NONE || m->heir[op->parent] == TL_NONE;
	if (!is_outermost)
		within = call_of(t, op->parent, &parent_backward);
	if (call == TL_NONE) {
		add_outside(m, index, is_outermost || within != TL_NONE);
		return;
	}
	if (backward != parent_backward)
		within = TL_NONE;
	add_self(m, row_of(m, call, backward), index);
	for (; call != TL_NONE; call = t->module_calls.items[call].parent) {
		struct table_row *row = row_of(m, call, backward);

		row->flops = add_saturating(row->flops, timeline__op_sums(t, index)->flops);
		inner = inner && call != within;
		if (!inner)
			continue;
		add_total(m, row, index);
		if (backward && !m->has_backward[call]) {
			m->has_backward[call] = true;
			row->calls++;
		}
	}
}

/* Adds the calls of CUDA, which are not part of the ops' own times. */
static void add_api(struct modules *m, const struct tl_api *api)
{
	bool backward = false;
	uint32_t call = api->op == TL_NONE ? TL_NONE : call_of(m->t, api->op, &backward);

	if (!is_for(m, api->thread))
		return;
	if (call == TL_NONE)
		m->outside.self_cpu_ns += api->self_ns;
	else
		row_of(m, call, backward)->self_cpu_ns += api->self_ns;
	if (api->parent == TL_NONE && (api->op == TL_NONE || m->heir[api->op] == TL_NONE))
		m->outside.cpu_total_ns += api->end_ns - api->start_ns;
}

/* Adds launched work without a listed op: listed ops have theirs in their sums. */
static void add_work(struct modules *m, const struct tl_gpu *g)
{
	if ((g->op != TL_NONE && m->heir[g->op] != TL_NONE) || !tl_gpu_is_work(g) ||
	    !tl_part_has(m->only, &m->t->processes.items[g->process]))
		return;
	m->outside.self_cuda_ns += g->end_ns - g->start_ns;
	m->outside.cuda_total_ns += g->end_ns - g->start_ns;
}

/* ---- rows ---- */

static int add_rows(struct table *table, const struct node *n)
{
	int err;

	/* Called only in processes that are not selected. */
	if (!n->forward.calls)
		return 0;
	err = vec_push(&table->rows, n->forward);

	return err || !n->backward.calls ? err : vec_push(&table->rows, n->backward);
}

/* Writes a node, then those below it. Its depth is bounded by that of calls. */
static int add_tree(const struct modules *m, struct table *table, uint32_t at)
{
	const struct node *n = &m->nodes.items[at];
	int err = add_rows(table, n);

	for (uint32_t c = n->children; c != TL_NONE && !err; c = m->nodes.items[c].next)
		err = add_tree(m, table, c);
	return err;
}

int table_add_modules(const struct timeline *t, const struct table_options *options,
		      struct table *table)
{
	CLEANUP(modules__done)
	struct modules m = {.t = t,
			    .only = &options->only,
			    .compensation = &table->compensation,
			    .outside = {.name = OUTSIDE, .first_op = TL_NONE}};
	int err;

	m.heir = malloc((t->ops.nr + 1) * sizeof(*m.heir));
	m.node_of = malloc((t->module_calls.nr + 1) * sizeof(*m.node_of));
	m.has_backward = calloc(t->module_calls.nr + 1, sizeof(*m.has_backward));
	err = m.heir && m.node_of && m.has_backward ? find_nodes(&m, options->tree) : -ENOMEM;
	if (err)
		return err;
	timeline__heirs(t, m.heir);
	for (uint32_t i = 0; i < t->ops.nr; i++)
		add_op(&m, i);
	for (size_t i = 0; i < t->gpu.api.nr; i++)
		add_api(&m, &t->gpu.api.items[i]);
	for (size_t i = 0; i < t->gpu.work.nr; i++)
		add_work(&m, &t->gpu.work.items[i]);
	for (uint32_t i = 0; i < m.nodes.nr && !err; i++)
		if (!m.nodes.items[i].forward.depth)
			err = add_tree(&m, table, i);
	return err ? err : vec_push(&table->rows, m.outside);
}
