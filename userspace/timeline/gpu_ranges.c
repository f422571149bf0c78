/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

#include "timeline/gpu_ranges.h"

#include <errno.h>

#include "base/banned.h"
#include "base/hash.h"

/* The innermost annotation around an op, itself included. */
static uint32_t annotation_of(const struct timeline *t, uint32_t op)
{
	while (op != TL_NONE && t->ops.items[op].scope != GP_SCOPE_USER)
		op = t->ops.items[op].parent;
	return op;
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
		key = hash_mix(key);
	}
	err = hash__set(of, key, r->items.nr);
	return err ? err : vec_push(&r->items, *new);
}

int gpu_ranges__find(const struct timeline *t, bool shown, struct gpu_ranges *ret_ranges)
{
	struct hash of = {0};
	int err = 0;

	*ret_ranges = (struct gpu_ranges){0};
	for (size_t i = 0; i < t->gpu.work.nr && !err; i++) {
		const struct tl_gpu *g = &t->gpu.work.items[i];
		struct gpu_range range = {
			.op = annotation_of(t, g->op),
			.process = g->process,
			.device = g->device,
			.stream = g->stream,
			.start_ns = shown ? g->shown_start_ns : g->start_ns,
			.end_ns = shown ? g->shown_end_ns : g->end_ns,
		};

		/* What overlaps is drawn on other rows. */
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
