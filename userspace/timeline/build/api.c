/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Puts API calls into the ops. A call belongs to the op around its middle: CUPTI's clock and the
 * kernel's differ a little, so the call's ends may stick out of the op, and are cut. Then calls
 * nest among themselves as ops do.
 */
#include "timeline/model/build.h"

#include <errno.h>
#include <stdlib.h>

#include "base/banned.h"
#include "base/cleanup.h"

/* Error of the clocks: work that begins earlier before its call belongs to another call. */
#define CLOCK_ERROR_NS 1000000

/* Sorts raw calls by (thread, start, longest first). The caller frees the order. */
static int order_calls(const struct build *b, struct sort_item **ret_order)
{
	CLEANUP(cleanup_free)
	struct sort_item *order = malloc((b->gpu.apis.nr + 1) * sizeof(*order));
	size_t nr = b->gpu.apis.nr;
	int err;

	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++)
		order[i] = (struct sort_item){UINT64_MAX - b->gpu.apis.items[i].api.end_ns,
					      (uint32_t)i};
	err = sort_items(order, nr);
	for (size_t i = 0; i < nr; i++)
		order[i].key = b->gpu.apis.items[order[i].index].api.start_ns;
	if (!err)
		err = sort_items(order, nr);
	for (size_t i = 0; i < nr; i++)
		order[i].key = b->gpu.apis.items[order[i].index].api.thread;
	if (!err)
		err = sort_items(order, nr);
	if (!err)
		*ret_order = TAKE(order);
	return err;
}

/* ---- ops ---- */

/* Whether the op itself or one that it is in has this instance. */
static bool is_under(const struct build *b, uint32_t op, uint64_t instance)
{
	for (int up = 0; op != TL_NONE && up < TL_SEARCH_DEPTH; up++) {
		if (b->t->ops.items[op].instance == instance)
			return true;
		op = b->t->ops.items[op].parent;
	}
	return false;
}

/* Checks the op that the probe named. If it does not stand where the call does, it was lost, unless
 * it was still open when the capture ended. */
static void check_instance(struct build *b, const struct raw_api *raw)
{
	if (!raw->instance || is_under(b, raw->api.op, raw->instance))
		return;
	if (raw->api.op != TL_NONE || build_op_of_instance(b, raw->instance) != TL_NONE ||
	    build_instance_ended(b, raw->instance))
		b->counts[TL_API_OP_MISSING]++;
}

static void place_in_op(struct build *b, struct raw_api *raw)
{
	struct tl_api *api = &raw->api;
	uint64_t middle_ns = api->start_ns + (api->end_ns - api->start_ns) / 2;
	struct op_gap gap;

	api->op = build_op_at(b, api->thread, middle_ns, &gap);
	if (api->start_ns < gap.low_ns)
		api->start_ns = gap.low_ns;
	if (api->end_ns > gap.high_ns)
		api->end_ns = gap.high_ns;
	check_instance(b, raw);
}

/* ---- nesting ---- */

struct nest {
	struct build *b;
	uint32_t *stack; /* open calls, outermost first */
	size_t depth;
};

/* Whether the call is part of another one: a driver call inside a runtime call does its work, and
 * so does a call with the same id of CUPTI. */
static bool is_part(const struct tl_api *inner, const struct tl_api *outer)
{
	if (outer->flags & (GP_API_NCCL | GP_API_OVERHEAD))
		return false;
	if ((inner->flags & GP_API_DRIVER) && !(outer->flags & GP_API_DRIVER))
		return true;
	return inner->correlation_id && inner->correlation_id == outer->correlation_id;
}

/* Takes what only the inner call has. */
static void adopt(struct tl_api *outer, const struct tl_api *inner)
{
	if (outer->correlation_id)
		return;
	outer->correlation_id = inner->correlation_id;
	outer->flags |= inner->flags & GP_API_CUPTI;
}

static int name_call(struct build *b, const struct tl_api *seen, uint32_t index)
{
	uint64_t process = b->t->threads.items[seen->thread].process;
	struct api_key key = {process << 32 | seen->correlation_id, seen->start_ns, index};

	return seen->correlation_id ? vec_push(&b->gpu.api_keys, key) : 0;
}

/* A call that outlasts the overhead is not in it: the overhead ends where the call begins. */
static bool cut_overhead(struct nest *n, struct tl_api *overhead, const struct tl_api *call)
{
	uint64_t cut_ns = overhead->end_ns - call->start_ns;

	if (!(overhead->flags & GP_API_OVERHEAD) || call->end_ns <= overhead->end_ns)
		return false;
	overhead->end_ns -= cut_ns;
	overhead->self_ns -= cut_ns;
	if (overhead->parent != TL_NONE)
		n->b->t->gpu.api.items[overhead->parent].self_ns += cut_ns;
	else if (overhead->op != TL_NONE)
		n->b->t->ops.items[overhead->op].self_ns += cut_ns;
	return true;
}

static int nest_call(struct nest *n, const struct tl_api *from)
{
	struct tl_api *calls = n->b->t->gpu.api.items, *parent = NULL;
	uint32_t index = (uint32_t)n->b->t->gpu.api.nr;
	struct tl_api api = *from;

	while (n->depth && (calls[n->stack[n->depth - 1]].thread != api.thread ||
			    calls[n->stack[n->depth - 1]].end_ns <= api.start_ns ||
			    cut_overhead(n, &calls[n->stack[n->depth - 1]], &api)))
		n->depth--;
	if (n->depth) {
		api.parent = n->stack[n->depth - 1];
		parent = &calls[api.parent];
		if (is_part(&api, parent)) {
			adopt(parent, &api);
			return name_call(n->b, &api, api.parent);
		}
		if (api.end_ns > parent->end_ns) {
			n->b->counts[TL_NESTING_REPAIRED]++;
			api.end_ns = parent->end_ns;
		}
		parent->self_ns -= api.end_ns - api.start_ns;
	} else if (api.op == TL_NONE && (api.flags & GP_API_OVERHEAD)) {
		/* Overhead on a thread of CUPTI's own, or in no known operator. */
		return 0;
	} else if (api.op != TL_NONE) {
		n->b->t->ops.items[api.op].self_ns -= api.end_ns - api.start_ns;
	}
	api.self_ns = api.end_ns - api.start_ns;
	n->stack[n->depth++] = index;
	/* Reserved: there is room for all. */
	calls[n->b->t->gpu.api.nr++] = api;
	return name_call(n->b, &api, index);
}

static int nest_calls(struct build *b, const struct sort_item *order)
{
	CLEANUP(cleanup_free) uint32_t *stack = malloc((b->gpu.apis.nr + 1) * sizeof(*stack));
	struct nest n = {.b = b, .stack = stack};
	int err = vec_reserve(&b->t->gpu.api, b->gpu.apis.nr);

	if (!stack)
		return -ENOMEM;
	for (size_t i = 0; i < b->gpu.apis.nr && !err; i++)
		if (!b->gpu.apis.items[order[i].index].gone)
			err = nest_call(&n, &b->gpu.apis.items[order[i].index].api);
	return err;
}

/* Sorts keys, then starts. */
static int sort_keys(struct build *b)
{
	size_t nr = b->gpu.api_keys.nr;
	CLEANUP(cleanup_free) struct sort_item *order = malloc((nr + 1) * sizeof(*order));
	CLEANUP(cleanup_free) struct api_key *copy = malloc((nr + 1) * sizeof(*copy));
	int err;

	if (!order || !copy)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++) {
		copy[i] = b->gpu.api_keys.items[i];
		order[i] = (struct sort_item){copy[i].start_ns, (uint32_t)i};
	}
	err = sort_items(order, nr);
	for (size_t i = 0; i < nr; i++)
		order[i].key = copy[order[i].index].key;
	if (!err)
		err = sort_items(order, nr);
	for (size_t i = 0; i < nr && !err; i++)
		b->gpu.api_keys.items[i] = copy[order[i].index];
	return err;
}

int build_api(struct build *b)
{
	CLEANUP(cleanup_free) struct sort_item *order = NULL;
	CLEANUP(cleanup_free) struct sort_item *placed = NULL;
	int err;

	if (!b->gpu.apis.nr)
		return 0;
	err = order_calls(b, &order);
	if (!err)
		err = build_api_join(b, order);
	if (err)
		return err;
	for (size_t i = 0; i < b->gpu.apis.nr; i++)
		if (!b->gpu.apis.items[i].gone)
			place_in_op(b, &b->gpu.apis.items[i]);
	/* Starts and ends have changed. */
	err = order_calls(b, &placed);
	if (!err)
		err = nest_calls(b, placed);
	vec_done(&b->gpu.apis);
	return err ? err : sort_keys(b);
}

/* ---- calls by correlation id ---- */

static bool is_after(const struct api_key *k, uint64_t key, uint64_t start_ns)
{
	return k->key != key ? k->key > key : k->start_ns > start_ns;
}

uint32_t build_gpu_call(const struct build *b, uint32_t process, uint32_t correlation_id,
			uint64_t limit_ns)
{
	uint64_t key = (uint64_t)process << 32 | correlation_id;
	size_t low = 0, high = b->gpu.api_keys.nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (is_after(&b->gpu.api_keys.items[middle], key, limit_ns + CLOCK_ERROR_NS))
			high = middle;
		else
			low = middle + 1;
	}
	if (!low || b->gpu.api_keys.items[low - 1].key != key)
		return TL_NONE;
	return b->gpu.api_keys.items[low - 1].api;
}
