/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Puts memory into categories by the rules of torch.profiler's memory timeline, in its order. A
 * rule may not change what an earlier one decided, except for parameters and the optimizer's state.
 */
#include "timeline/model/data_flow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "base/cleanup.h"

/* Three rounds are enough for real programs; a forged recording could need any number. */
#define ROUNDS_MAX 1000

#define ACCUMULATE_GRAD "torch::autograd::AccumulateGrad"

struct rules {
	struct data_flow f;
	struct build *b;
	uint8_t *whole;	  /* of each storage: the category of all its versions, or TL_UNKNOWN */
	uint8_t *version; /* of each version of each storage */
	bool *marked;	  /* of each version: scratch set of one rule */
	bool *follows;	  /* of each storage: some version depends on a gradient */
	uint8_t *use;	  /* of each storage: what nodes work with it */
	bool *learns;	  /* of each process: an optimizer's parameters are known */
};

enum {
	USE_STEP = 1,	 /* Optimizer.step writes it, and it outlives the step */
	USE_FORWARD = 2, /* used outside of Optimizer.step and the backward pass */
	USE_BACKWARD = 4,
};

static void rules__done(struct rules *r)
{
	data_flow__done(&r->f);
	free(r->whole);
	free(r->version);
	free(r->marked);
	free(r->follows);
	free(r->use);
	free(r->learns);
}

static uint32_t version_at(const struct rules *r, uint32_t storage, uint32_t version)
{
	return r->f.storages.items[storage].versions_at + version;
}

static uint8_t category(const struct rules *r, uint32_t storage, uint32_t version)
{
	return r->whole[storage] != TL_UNKNOWN ? r->whole[storage]
					       : r->version[version_at(r, storage, version)];
}

static void set_default(struct rules *r, uint32_t storage, uint32_t version, uint8_t to)
{
	uint8_t *at = &r->version[version_at(r, storage, version)];

	if (*at == TL_UNKNOWN)
		*at = to;
}

static const struct flow_edge *edges_of(const struct rules *r, const struct flow_node *n)
{
	return r->f.edges.items + n->edges_at;
}

#define EACH_NODE(r, n)                                                                            \
	for (const struct flow_node *n = (r)->f.nodes.items, *n##_end = n + (r)->f.nodes.nr;       \
	     n < n##_end; n++)
#define EACH_EDGE(r, n, e)                                                                         \
	for (const struct flow_edge *e = edges_of(r, n), *e##_end = e + (n)->edges_nr;             \
	     e < e##_end; e++)

static bool is_input(const struct flow_edge *e)
{
	return !e->allocated;
}

/* ---- gradients and temporaries ---- */

/* AccumulateGrad's first child detaches the new gradient, or adds it to the existing one. */
static void set_gradient(struct rules *r, uint32_t op)
{
	const struct tl_op *child = &r->b->t->ops.items[op + 1];
	struct tensors_reader t = tensors_of(r->b, r->f.op_tensors[op + 1]);
	uint32_t from, to, at, word;
	char letter;

	if (child->parent != op ||
	    (strcmp(child->name, "aten::detach") != 0 && strcmp(child->name, "aten::add_") != 0) ||
	    !tensors_reader__next(&t, &letter, &from, &to) || letter != 't')
		return;
	at = from;
	word = tensors_next_stored(t.words, &at, to);
	if (word != TL_NONE)
		r->whole[r->f.word_storage[word]] = TL_GRADIENT;
}

static void set_gradients_and_temporaries(struct rules *r)
{
	const struct timeline *t = r->b->t;

	EACH_NODE (r, n)
		EACH_EDGE (r, n, e)
			if (e->allocated && e->freed)
				r->whole[e->storage] = TL_TEMPORARY;
	for (uint32_t i = 0; i + 1 < t->ops.nr; i++)
		if (t->ops.items[i].scope == GP_SCOPE_BACKWARD &&
		    !strcmp(t->ops.items[i].name, ACCUMULATE_GRAD))
			set_gradient(r, i);
}

/* ---- what an optimizer works on ---- */

/* Whether Optimizer.step made it and freed it. */
static bool dies_in_step(const struct rules *r, const struct flow_node *n, const struct storage *s)
{
	const struct tl_op *step = &r->b->t->ops.items[n->optimizer];

	return s->allocated && s->freed && s->allocated_ns >= step->start_ns &&
	       s->freed_ns <= step->end_ns;
}

/*
 * torch.profiler asks Python's optimizers. Here, memory that Optimizer.step writes and that
 * outlives it is a parameter if operators outside of the step and the backward pass use it, and the
 * optimizer's state if nothing else does.
 */
static void look_at_optimizers(struct rules *r)
{
	EACH_NODE (r, n)
		EACH_EDGE (r, n, e) {
			uint8_t *use = &r->use[e->storage];

			if (n->optimizer == TL_NONE)
				*use |= e->freed ? 0 : n->backward ? USE_BACKWARD : USE_FORWARD;
			else if (flow_edge_writes(e) &&
				 !dies_in_step(r, n, &r->f.storages.items[e->storage]))
				*use |= USE_STEP;
		}
	for (size_t i = 0; i < r->f.storages.nr; i++)
		if ((r->use[i] & (USE_STEP | USE_FORWARD)) == (USE_STEP | USE_FORWARD) &&
		    r->whole[i] == TL_UNKNOWN) {
			r->whole[i] = TL_PARAMETER;
			r->learns[r->f.storages.items[i].process] = true;
		}
}

/* Only with known parameters, which would themselves pass otherwise. */
static void set_optimizer_state(struct rules *r)
{
	for (size_t i = 0; i < r->f.storages.nr; i++)
		if (r->use[i] == USE_STEP && r->whole[i] != TL_GRADIENT &&
		    r->learns[r->f.storages.items[i].process])
			r->whole[i] = TL_OPTIMIZER_STATE;
}

/* ---- inputs ---- */

static bool is_learnt(uint8_t c)
{
	return c == TL_GRADIENT || c == TL_PARAMETER;
}

/* Dependence is between any versions of two storages, so it may run backwards through the graph. */
static bool follow_once(struct rules *r)
{
	bool changed = false;

	EACH_NODE (r, n) {
		bool depends = false;

		EACH_EDGE (r, n, e)
			depends |= is_input(e) && (r->follows[e->storage] ||
						   is_learnt(category(r, e->storage, e->version)));
		if (!depends)
			continue;
		EACH_EDGE (r, n, e) {
			bool next = is_input(e) ? is_learnt(category(r, e->storage, e->version)) ||
							  flow_edge_writes(e)
						: flow_edge_writes(e);

			changed |= next && !r->follows[e->storage];
			r->follows[e->storage] |= next;
		}
	}
	return changed;
}

static void find_followers(struct rules *r)
{
	memset(r->follows, 0, r->f.storages.nr);
	for (int i = 0; i < ROUNDS_MAX; i++)
		if (!follow_once(r))
			return;
	r->b->tensors.invalid_nr++;
}

/* Marks every version used by an op that leads, sooner or later, to a gradient. */
static void mark_producers(struct rules *r)
{
	memset(r->marked, 0, r->f.versions_nr);
	for (size_t i = r->f.nodes.nr; i-- > 0;) {
		const struct flow_node *n = &r->f.nodes.items[i];
		bool any = false;

		EACH_EDGE (r, n, e) {
			if (is_input(e))
				any |= is_learnt(category(r, e->storage, e->version)) ||
				       r->marked[version_at(r, e->storage, e->version)];
			if (flow_edge_writes(e))
				any |= is_learnt(category(r, e->storage, flow_edge_output(e))) ||
				       r->marked[version_at(r, e->storage, flow_edge_output(e))];
		}
		if (!any)
			continue;
		EACH_EDGE (r, n, e) {
			if (is_input(e))
				r->marked[version_at(r, e->storage, e->version)] = true;
			if (flow_edge_writes(e))
				r->marked[version_at(r, e->storage, flow_edge_output(e))] = true;
		}
	}
}

static void set_inputs(struct rules *r)
{
	find_followers(r);
	mark_producers(r);
	EACH_NODE (r, n)
		EACH_EDGE (r, n, e)
			if (n->backward && flow_edge_writes(e))
				r->marked[version_at(r, e->storage, flow_edge_output(e))] = false;
	for (uint32_t i = 0; i < r->f.storages.nr; i++)
		for (uint32_t v = 0; v <= r->f.storages.items[i].version; v++)
			if (r->marked[version_at(r, i, v)] && !r->follows[i])
				set_default(r, i, v, TL_INPUT);
}

/* ---- parameters ---- */

/* Whether the node is outside of the backward pass and works on no known gradient. */
static bool may_be_forward(const struct rules *r, const struct flow_node *n)
{
	if (n->backward)
		return false;
	EACH_EDGE (r, n, e)
		if ((is_input(e) && category(r, e->storage, e->version) == TL_GRADIENT) ||
		    (flow_edge_writes(e) &&
		     category(r, e->storage, flow_edge_output(e)) == TL_GRADIENT))
			return false;
	return true;
}

/* Marks what ops take together with something that comes from an input. */
static void mark_candidates(struct rules *r, bool *candidate)
{
	for (uint32_t i = 0; i < r->f.storages.nr; i++)
		for (uint32_t v = 0; v <= r->f.storages.items[i].version; v++)
			r->marked[version_at(r, i, v)] = category(r, i, v) == TL_INPUT;
	EACH_NODE (r, n) {
		bool depends = false;

		EACH_EDGE (r, n, e)
			depends |= is_input(e) && r->marked[version_at(r, e->storage, e->version)];
		if (!depends || !may_be_forward(r, n))
			continue;
		EACH_EDGE (r, n, e)
			if (flow_edge_writes(e))
				r->marked[version_at(r, e->storage, flow_edge_output(e))] = true;
		EACH_EDGE (r, n, e)
			if (is_input(e) && !r->marked[version_at(r, e->storage, e->version)])
				candidate[version_at(r, e->storage, e->version)] = true;
	}
}

/* Sets r->marked to what goes, sooner or later, into a gradient. */
static void mark_used_for_gradients(struct rules *r)
{
	memset(r->marked, 0, r->f.versions_nr);
	for (size_t i = r->f.nodes.nr; i-- > 0;) {
		const struct flow_node *n = &r->f.nodes.items[i];
		bool any = false;

		EACH_EDGE (r, n, e)
			if (flow_edge_writes(e))
				any |= category(r, e->storage, flow_edge_output(e)) ==
					       TL_GRADIENT ||
				       r->marked[version_at(r, e->storage, flow_edge_output(e))];
		if (!any)
			continue;
		EACH_EDGE (r, n, e)
			if (is_input(e))
				r->marked[version_at(r, e->storage, e->version)] = true;
	}
}

static int set_parameters(struct rules *r)
{
	CLEANUP(cleanup_free) bool *candidate = calloc(r->f.versions_nr + 1, sizeof(*candidate));

	if (!candidate)
		return -ENOMEM;
	mark_candidates(r, candidate);
	mark_used_for_gradients(r);
	find_followers(r);
	for (uint32_t i = 0; i < r->f.storages.nr; i++) {
		bool is_one = false;

		for (uint32_t v = 0; v <= r->f.storages.items[i].version; v++)
			is_one |= candidate[version_at(r, i, v)] && r->marked[version_at(r, i, v)];
		if (is_one && r->follows[i])
			r->whole[i] = TL_PARAMETER;
	}
	return 0;
}

/* ---- activations, and the rest of the backward pass ---- */

static void set_activations(struct rules *r)
{
	EACH_NODE (r, n) {
		bool required = false, forbidden = n->backward;

		EACH_EDGE (r, n, e) {
			uint8_t c = category(r, e->storage, e->version);

			if (!is_input(e))
				continue;
			required |= c == TL_INPUT || c == TL_ACTIVATION;
			forbidden |= c != TL_INPUT && c != TL_ACTIVATION && c != TL_PARAMETER &&
				     c != TL_TEMPORARY;
		}
		if (!required || forbidden)
			continue;
		EACH_EDGE (r, n, e)
			if (flow_edge_writes(e))
				set_default(r, e->storage, flow_edge_output(e), TL_ACTIVATION);
	}
}

static void set_autograd_detail(struct rules *r)
{
	EACH_NODE (r, n)
		EACH_EDGE (r, n, e) {
			uint32_t output = flow_edge_output(e);
			uint8_t before;

			if (!n->backward || !flow_edge_writes(e))
				continue;
			before = output ? category(r, e->storage, output - 1) : TL_UNKNOWN;
			if (before == TL_UNKNOWN || before == TL_AUTOGRAD_DETAIL)
				set_default(r, e->storage, output, TL_AUTOGRAD_DETAIL);
		}
}

/* ---- what happened when ---- */

static int add(struct rules *r, uint64_t time_ns, uint8_t change, uint32_t storage, uint8_t from,
	       uint8_t to)
{
	const struct storage *s = &r->f.storages.items[storage];
	struct tl_category_change c = {
		.time_ns = time_ns,
		.bytes = s->bytes,
		.process = s->process,
		.change = change,
		.from = from,
		.to = to,
		.device = s->device,
	};

	return vec_push(&r->b->t->categories, c);
}

/* Adds memory that no op was called with, if its size is known. */
static int add_others(struct rules *r)
{
	int err = 0;

	for (uint32_t i = 0; i < r->f.storages.nr && !err; i++) {
		const struct storage *s = &r->f.storages.items[i];

		if (s->is_tensor || !s->bytes)
			continue;
		if (s->allocated)
			err = add(r, s->allocated_ns, TL_CREATE, i, TL_UNKNOWN, TL_UNKNOWN);
		else
			err = add(r, 0, TL_PREEXISTING, i, TL_UNKNOWN, TL_UNKNOWN);
		if (!err && s->freed)
			err = add(r, s->freed_ns, TL_DESTROY, i, TL_UNKNOWN, TL_UNKNOWN);
	}
	return err;
}

static int add_edge(struct rules *r, const struct flow_node *n, const struct flow_edge *e)
{
	const struct storage *s = &r->f.storages.items[e->storage];
	uint8_t first = category(r, e->storage, e->allocated ? 0 : e->version), last;
	int err = 0;

	if (e->allocated)
		err = add(r, s->allocated_ns, TL_CREATE, e->storage, first, first);
	else if (e->written)
		err = add(r, n->start_ns, TL_WRITE, e->storage, first,
			  category(r, e->storage, e->version + 1));
	if (err || !e->freed)
		return err;
	last = category(r, e->storage, s->version);
	return add(r, s->freed_ns, TL_DESTROY, e->storage, last, last);
}

static int sort_changes(struct timeline *t)
{
	size_t nr = t->categories.nr;
	CLEANUP(cleanup_free) struct sort_item *order = malloc((nr + 1) * sizeof(*order));
	CLEANUP(cleanup_free) struct tl_category_change *copy = malloc((nr + 1) * sizeof(*copy));
	int err;

	if (!order || !copy || nr >= TL_NONE)
		return -ENOMEM;
	/* Times are below 2^62, and there are four kinds of change: both fit the key. */
	for (uint32_t i = 0; i < nr; i++)
		order[i] = (struct sort_item){t->categories.items[i].time_ns << 2 |
						      (t->categories.items[i].change - 1U),
					      i};
	err = sort_items(order, nr);
	if (err || !nr)
		return err;
	memcpy(copy, t->categories.items, nr * sizeof(*copy));
	for (size_t i = 0; i < nr; i++)
		t->categories.items[i] = copy[order[i].index];
	return 0;
}

static int write_changes(struct rules *r)
{
	int err = add_others(r);

	for (uint32_t i = 0; i < r->f.storages.nr && !err; i++) {
		const struct storage *s = &r->f.storages.items[i];
		uint8_t first = s->is_tensor ? category(r, i, 0) : TL_UNKNOWN;

		if (s->is_tensor && !s->allocated)
			err = add(r, 0, TL_PREEXISTING, i, first, first);
	}
	EACH_NODE (r, n)
		EACH_EDGE (r, n, e)
			err = err ? err : add_edge(r, n, e);
	return err ? err : sort_changes(r->b->t);
}

static int apply(struct rules *r)
{
	int err;

	set_gradients_and_temporaries(r);
	look_at_optimizers(r);
	set_inputs(r);
	err = set_parameters(r);
	if (err)
		return err;
	set_activations(r);
	set_optimizer_state(r);
	set_autograd_detail(r);
	return write_changes(r);
}

int build_categories(struct build *b)
{
	CLEANUP(rules__done) struct rules r = {.b = b};
	int err;

	if (!b->t->has_categories)
		return 0;
	err = data_flow__init(&r.f, b);
	if (err)
		return err;
	r.whole = malloc(r.f.storages.nr + 1);
	r.version = malloc(r.f.versions_nr + 1);
	r.marked = calloc(r.f.versions_nr + 1, sizeof(*r.marked));
	r.follows = calloc(r.f.storages.nr + 1, sizeof(*r.follows));
	r.use = calloc(r.f.storages.nr + 1, sizeof(*r.use));
	r.learns = calloc(b->t->processes.nr + 1, sizeof(*r.learns));
	if (!r.whole || !r.version || !r.marked || !r.follows || !r.use || !r.learns)
		return -ENOMEM;
	memset(r.whole, TL_UNKNOWN, r.f.storages.nr + 1);
	memset(r.version, TL_UNKNOWN, r.f.versions_nr + 1);
	return apply(&r);
}
