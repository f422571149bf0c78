/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Finds ops by instance, and decides what a missing instance means. An op that is still open at the
 * end of the capture has no event, though its children do; that is no loss. Instances count up per
 * thread at entry. So if an op began after the missing one, and its parent is from before it, the
 * missing one had ended.
 */
#include "timeline/model/build.h"

#include <errno.h>
#include <stdlib.h>

#include "base/banned.h"
#include "base/cleanup.h"

static uint32_t number_of(uint64_t instance)
{
	return (uint32_t)(instance >> 32);
}

/* Finds the first instance that is not below this one. */
static size_t lower_bound(const struct build *b, uint64_t instance)
{
	size_t low = 0, high = b->t->ops.nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (b->tree.by_instance[middle].key < instance)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

uint32_t build_op_of_instance(const struct build *b, uint64_t instance)
{
	size_t at = instance ? lower_bound(b, instance) : b->t->ops.nr;

	if (at == b->t->ops.nr || b->tree.by_instance[at].key != instance)
		return TL_NONE;
	return b->tree.by_instance[at].index;
}

bool build_instance_ended(const struct build *b, uint64_t instance)
{
	size_t at = lower_bound(b, instance);

	return at < b->t->ops.nr && number_of(b->tree.by_instance[at].key) == number_of(instance) &&
	       b->tree.oldest_parent[at] < instance;
}

/* Finds the first op of the thread that begins after this time. */
static uint32_t next_op(const struct build *b, uint32_t thread, uint64_t time_ns)
{
	uint32_t low = b->tree.thread_ops[thread], high = b->tree.thread_ops[thread + 1];

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (b->t->ops.items[middle].start_ns <= time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Limits the gap where the next op begins. Asynchronous ops stand among the others without holding
 * them. */
static uint64_t next_start(const struct build *b, uint32_t thread, uint32_t from)
{
	const struct tl_op *ops = b->t->ops.items;
	uint32_t i = from, end = b->tree.thread_ops[thread + 1];

	while (i < end && (ops[i].flags & GP_OP_ASYNC) && i - from < TL_SEARCH_DEPTH)
		i++;
	return i < end ? ops[i].start_ns : TL_TIME_END_NS;
}

uint32_t build_op_at(const struct build *b, uint32_t thread, uint64_t time_ns,
		     struct op_gap *ret_gap)
{
	uint32_t next = next_op(b, thread, time_ns), low = next, op = TL_NONE, up = 0;
	const struct tl_op *ops = b->t->ops.items;
	uint64_t low_ns = 0;

	while (low > b->tree.thread_ops[thread] && (ops[low - 1].flags & GP_OP_ASYNC) &&
	       up < TL_SEARCH_DEPTH) {
		low--;
		up++;
	}
	if (low > b->tree.thread_ops[thread])
		op = low - 1;
	for (; op != TL_NONE && up < TL_SEARCH_DEPTH && ops[op].end_ns < time_ns;
	     op = ops[op].parent) {
		if (ops[op].end_ns > low_ns)
			low_ns = ops[op].end_ns;
		up++;
	}
	if (up >= TL_SEARCH_DEPTH) {
		op = TL_NONE;
		low_ns = time_ns;
	}
	if (!ret_gap)
		return op;
	*ret_gap = (struct op_gap){op, low_ns, next_start(b, thread, next)};
	if (op != TL_NONE && ops[op].start_ns > low_ns)
		ret_gap->low_ns = ops[op].start_ns;
	if (op != TL_NONE && ops[op].end_ns < ret_gap->high_ns)
		ret_gap->high_ns = ops[op].end_ns;
	return op;
}

/* Computes, for each place, the least parent from there on in its thread. */
static void find_oldest_parents(struct build *b)
{
	const uint64_t *parents = b->tree.parents.items;
	uint64_t oldest = UINT64_MAX;

	for (size_t i = b->t->ops.nr; i-- > 0;) {
		const struct sort_item *item = &b->tree.by_instance[i];

		if (i + 1 < b->t->ops.nr && number_of(item[1].key) != number_of(item->key))
			oldest = UINT64_MAX;
		if (parents[item->index] < oldest)
			oldest = parents[item->index];
		b->tree.oldest_parent[i] = oldest;
	}
}

/* The instance exists, though it stands for itself. */
static bool is_async(const struct build *b, uint64_t instance)
{
	uint32_t op = build_op_of_instance(b, instance);

	return op != TL_NONE && (b->t->ops.items[op].flags & GP_OP_ASYNC);
}

static void count_missing(struct build *b)
{
	for (size_t i = 0; i < b->tree.missing.nr; i++) {
		const struct sort_item *m = &b->tree.missing.items[i];

		if (is_async(b, m->key))
			continue;
		if (b->t->ops.items[m->index].parent != TL_NONE || build_instance_ended(b, m->key))
			b->counts[TL_PARENT_MISSING]++;
	}
}

int build_instances(struct build *b)
{
	struct timeline *t = b->t;

	b->tree.by_instance = malloc((t->ops.nr + 1) * sizeof(*b->tree.by_instance));
	b->tree.oldest_parent = malloc((t->ops.nr + 1) * sizeof(*b->tree.oldest_parent));
	b->tree.thread_ops = calloc(t->threads.nr + 1, sizeof(*b->tree.thread_ops));
	if (!b->tree.by_instance || !b->tree.oldest_parent || !b->tree.thread_ops)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->ops.nr; i++) {
		b->tree.by_instance[i] = (struct sort_item){t->ops.items[i].instance, i};
		b->tree.thread_ops[t->ops.items[i].thread + 1]++;
	}
	for (size_t i = 0; i < t->threads.nr; i++)
		b->tree.thread_ops[i + 1] += b->tree.thread_ops[i];
	if (sort_items(b->tree.by_instance, t->ops.nr))
		return -ENOMEM;
	for (size_t i = 1; i < t->ops.nr; i++)
		b->counts[TL_INSTANCE_DUPLICATE] +=
			b->tree.by_instance[i].key &&
			b->tree.by_instance[i].key == b->tree.by_instance[i - 1].key;
	find_oldest_parents(b);
	count_missing(b);
	return 0;
}
