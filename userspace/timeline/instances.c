/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Ops by instance, and what a missing instance means. An op that is still open at the end of the
 * capture has no event, though its children have; that is no loss. Instances count up per thread at
 * entry, so an op that began after the missing one with a parent from before it proves that the
 * missing one had ended.
 */
#include "timeline/build.h"

#include <errno.h>
#include <stdlib.h>

#include "base/banned.h"
#include "base/cleanup.h"

static uint32_t number_of(uint64_t instance)
{
	return (uint32_t)(instance >> 32);
}

/* Where the first instance that is not below this one lies. */
static size_t lower_bound(const struct build *b, uint64_t instance)
{
	size_t low = 0, high = b->t->ops.nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (b->by_instance[middle].key < instance)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

uint32_t build_op_of_instance(const struct build *b, uint64_t instance)
{
	size_t at = instance ? lower_bound(b, instance) : b->t->ops.nr;

	if (at == b->t->ops.nr || b->by_instance[at].key != instance)
		return TL_NONE;
	return b->by_instance[at].index;
}

bool build_instance_ended(const struct build *b, uint64_t instance)
{
	size_t at = lower_bound(b, instance);

	return at < b->t->ops.nr && number_of(b->by_instance[at].key) == number_of(instance) &&
	       b->oldest_parent[at] < instance;
}

/* For each place: the least parent of it and of the later ones of its thread number. */
static void find_oldest_parents(struct build *b, const uint64_t *parents)
{
	uint64_t oldest = UINT64_MAX;

	for (size_t i = b->t->ops.nr; i-- > 0;) {
		const struct sort_item *item = &b->by_instance[i];

		if (i + 1 < b->t->ops.nr && number_of(item[1].key) != number_of(item->key))
			oldest = UINT64_MAX;
		if (parents[item->index] < oldest)
			oldest = parents[item->index];
		b->oldest_parent[i] = oldest;
	}
}

static void count_missing(struct build *b)
{
	for (size_t i = 0; i < b->missing.nr; i++) {
		const struct sort_item *m = &b->missing.items[i];

		if (b->t->ops.items[m->index].parent != TL_NONE || build_instance_ended(b, m->key))
			b->counts[TL_PARENT_MISSING]++;
	}
}

int build_instances(struct build *b, const uint64_t *parents)
{
	struct timeline *t = b->t;

	b->by_instance = malloc((t->ops.nr + 1) * sizeof(*b->by_instance));
	b->oldest_parent = malloc((t->ops.nr + 1) * sizeof(*b->oldest_parent));
	b->thread_ops = calloc(t->threads.nr + 1, sizeof(*b->thread_ops));
	if (!b->by_instance || !b->oldest_parent || !b->thread_ops)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->ops.nr; i++) {
		b->by_instance[i] = (struct sort_item){t->ops.items[i].instance, i};
		b->thread_ops[t->ops.items[i].thread + 1]++;
	}
	for (size_t i = 0; i < t->threads.nr; i++)
		b->thread_ops[i + 1] += b->thread_ops[i];
	if (sort_items(b->by_instance, t->ops.nr))
		return -ENOMEM;
	for (size_t i = 1; i < t->ops.nr; i++)
		b->counts[TL_INSTANCE_DUPLICATE] +=
			b->by_instance[i].key && b->by_instance[i].key == b->by_instance[i - 1].key;
	find_oldest_parents(b, parents);
	count_missing(b);
	return 0;
}
