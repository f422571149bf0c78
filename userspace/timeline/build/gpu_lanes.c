/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Chooses rows for GPU work in a drawing, where slices of one row may not overlap. A stream's work
 * has lane 0. Work that overlaps it (programmatic dependent launch) goes to the next lane with
 * room; synchronisations always go above lane 0. Each process has its own rows: what two processes
 * call device 0 may be two devices.
 */
#include "timeline/model/build.h"

#include <errno.h>
#include <stdlib.h>

#include "base/banned.h"
#include "base/cleanup.h"

#define LANES_MAX 32

struct row {
	uint64_t end_ns[LANES_MAX]; /* of the last piece of work */
};

struct lanes {
	struct build *b;
	struct hash device_of; /* process << 32 | device -> its number here */
	struct hash row_of;    /* that << 32 | stream -> its row */
	VEC(struct row) rows;
};

static void lanes__done(struct lanes *l)
{
	hash__done(&l->device_of);
	hash__done(&l->row_of);
	vec_done(&l->rows);
}

static struct row *row_of(struct lanes *l, const struct tl_gpu *g)
{
	uint64_t device = (uint64_t)g->process << 32 | g->device, key;
	const uint64_t *known = hash__find(&l->device_of, device);
	uint64_t number = known ? *known : l->device_of.nr;

	if (!known && hash__set(&l->device_of, device, number))
		return NULL;
	key = number << 32 | g->stream;
	known = hash__find(&l->row_of, key);
	if (known)
		return &l->rows.items[*known];
	if (hash__set(&l->row_of, key, l->rows.nr) || vec_push(&l->rows, (struct row){{0}}))
		return NULL;
	return &l->rows.items[l->rows.nr - 1];
}

static int choose(struct lanes *l, struct tl_gpu *g)
{
	struct row *row;

	if (g->device == TL_NONE) {
		l->b->counts[TL_GPU_NOT_DRAWN] += tl_gpu_is_work(g);
		return 0;
	}
	row = row_of(l, g);
	if (!row)
		return -ENOMEM;
	for (uint32_t i = tl_gpu_is_work(g) ? 0 : 1; i < LANES_MAX; i++) {
		if (row->end_ns[i] > g->shown_start_ns)
			continue;
		row->end_ns[i] = g->shown_end_ns;
		g->lane = i;
		return 0;
	}
	l->b->counts[TL_GPU_NOT_DRAWN]++;
	return 0;
}

int build_gpu_lanes(struct build *b)
{
	size_t nr = b->t->gpu.work.nr;
	CLEANUP(cleanup_free) struct sort_item *order = malloc((nr + 1) * sizeof(*order));
	CLEANUP(lanes__done) struct lanes l = {.b = b};
	int err;

	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++)
		order[i] = (struct sort_item){b->t->gpu.work.items[i].shown_start_ns, (uint32_t)i};
	err = sort_items(order, nr);
	for (size_t i = 0; i < nr && !err; i++)
		err = choose(&l, &b->t->gpu.work.items[order[i].index]);
	return err;
}
