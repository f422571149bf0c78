/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

#include "timeline/analysis/gpu_ranges.h"

#include <errno.h>
#include <stdlib.h>

#include "base/banned.h"
#include "base/cleanup.h"
#include "base/hash.h"

/* Finds, for each op, the innermost annotation around it, itself included, or TL_NONE. Parents come
 * first. The caller frees. */
static uint32_t *annotations_of(const struct timeline *t)
{
	uint32_t *of = malloc((t->ops.nr + 1) * sizeof(*of));

	for (size_t i = 0; of && i < t->ops.nr; i++) {
		const struct tl_op *op = &t->ops.items[i];

		of[i] = op->parent < i ? of[op->parent] : TL_NONE;
		if (op->scope == GP_SCOPE_USER)
			of[i] = (uint32_t)i;
	}
	return of;
}

static bool is_same(const struct gpu_range *a, const struct gpu_range *b)
{
	return a->op == b->op && a->device == b->device && a->stream == b->stream;
}

/* `of`: hash of op, device and stream -> index. */
static int add(struct gpu_ranges *r, struct hash *of, const struct gpu_range *new)
{
	uint64_t key = hash_mix((uint64_t) new->op << 32 | new->device) ^ new->stream;
	const uint64_t *known;
	int err;

	while ((known = hash__find(of, key))) {
		struct gpu_range *old = &r->items.items[*known];

		if (is_same(old, new)) {
			if (new->start_ns < old->start_ns)
				old->start_ns = new->start_ns;
			if (new->end_ns > old->end_ns)
				old->end_ns = new->end_ns;
			return 0;
		}
		key = hash_mix(key + 1);
	}
	err = hash__set(of, key, r->items.nr);
	return err ? err : vec_push(&r->items, *new);
}

int gpu_ranges__find(const struct timeline *t, bool shown, struct gpu_ranges *ret_ranges)
{
	CLEANUP(cleanup_free) uint32_t *annotation = NULL;
	struct hash of = {0};
	int err = 0;

	*ret_ranges = (struct gpu_ranges){0};
	if (!t->gpu.work.nr)
		return 0;
	annotation = annotations_of(t);
	if (!annotation)
		return -ENOMEM;
	for (size_t i = 0; i < t->gpu.work.nr && !err; i++) {
		const struct tl_gpu *g = &t->gpu.work.items[i];
		struct gpu_range range = {
			.op = g->op == TL_NONE ? TL_NONE : annotation[g->op],
			.process = g->process,
			.device = g->device,
			.stream = g->stream,
			.start_ns = shown ? g->shown_start_ns : g->start_ns,
			.end_ns = shown ? g->shown_end_ns : g->end_ns,
		};

		/* Overlapping work is drawn on other rows. */
		if (range.op != TL_NONE && tl_gpu_is_work(g) && !(shown && g->lane))
			err = add(ret_ranges, &of, &range);
	}
	hash__done(&of);
	return err;
}

void gpu_ranges__done(struct gpu_ranges *r)
{
	vec_done(&r->items);
}
