/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Finds what ran while a rank communicated: builds two unions of spans for each process, and
 * measures what they share.
 */
#include "timeline/analysis/rank_calls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "base/cleanup.h"
#include "timeline/model/sort.h"

struct rank_span {
	uint64_t start_ns, end_ns;
	uint32_t process;
};

struct spans {
	VEC(struct rank_span) items;
};

static void spans__done(struct spans *s)
{
	vec_done(&s->items);
}

/* Sorts by process and start, and joins spans of a process that touch. */
static int spans__unite(struct spans *s)
{
	size_t nr = s->items.nr, kept = 0;
	CLEANUP(cleanup_free) struct sort_item *items = malloc((nr + 1) * sizeof(*items));
	CLEANUP(cleanup_free) struct rank_span *sorted = malloc((nr + 1) * sizeof(*sorted));
	int err;

	if (!items || !sorted)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++)
		items[i] = (struct sort_item){s->items.items[i].start_ns, (uint32_t)i};
	err = sort_items(items, nr);
	for (size_t i = 0; i < nr; i++)
		items[i].key = s->items.items[items[i].index].process;
	err = err ? err : sort_items(items, nr);
	for (size_t i = 0; i < nr && !err; i++) {
		const struct rank_span *one = &s->items.items[items[i].index];
		struct rank_span *last = kept ? &sorted[kept - 1] : NULL;

		if (!last || last->process != one->process || last->end_ns < one->start_ns)
			sorted[kept++] = *one;
		else if (one->end_ns > last->end_ns)
			last->end_ns = one->end_ns;
	}
	for (size_t i = 0; i < kept && !err; i++)
		s->items.items[i] = sorted[i];
	s->items.nr = err ? nr : kept;
	return err;
}

static int add_span(struct spans *s, uint64_t start_ns, uint64_t end_ns, uint32_t process)
{
	if (end_ns <= start_ns)
		return 0;
	return vec_push(&s->items, ((struct rank_span){start_ns, end_ns, process}));
}

/* Adds top-level operators. Annotations and autograd nodes do no work of their own, nor does an
 * operator that queues a collective. */
static int add_ops(const struct timeline *t, const bool *by_gpu, struct spans *s)
{
	CLEANUP(cleanup_free) bool *covered = calloc(t->ops.nr + 1, sizeof(*covered));
	int err = covered ? 0 : -ENOMEM;

	for (size_t i = 0; i < t->ops.nr && !err; i++) {
		const struct tl_op *op = &t->ops.items[i];
		uint32_t process = t->threads.items[op->thread].process;
		bool communicates =
			rank_calls_is_range(op->name) || !strncmp(op->name, "c10d::", 6);

		if (op->parent != TL_NONE && covered[op->parent]) {
			covered[i] = true;
			continue;
		}
		covered[i] = communicates || op->scope == GP_SCOPE_FUNCTION;
		if (covered[i] && !communicates && !by_gpu[process] && !(op->flags & GP_OP_ASYNC))
			err = add_span(s, op->start_ns, op->end_ns, process);
	}
	return err;
}

static int add_kernels(const struct timeline *t, const bool *by_gpu, struct spans *s)
{
	int err = 0;

	for (size_t i = 0; i < t->gpu.work.nr && !err; i++) {
		const struct tl_gpu *g = &t->gpu.work.items[i];

		if (g->kind == TL_GPU_KERNEL && by_gpu[g->process] && !rank_calls_is_kernel(g))
			err = add_span(s, g->start_ns, g->end_ns, g->process);
	}
	return err;
}

static uint64_t common_ns(const struct rank_span *a, const struct rank_span *b)
{
	uint64_t from = a->start_ns > b->start_ns ? a->start_ns : b->start_ns;
	uint64_t to = a->end_ns < b->end_ns ? a->end_ns : b->end_ns;

	return to > from ? to - from : 0;
}

static void measure(struct ranks *ranks, const struct spans *talk, const struct spans *work)
{
	struct rank_row *row = NULL;
	size_t at = 0;

	for (size_t i = 0; i < talk->items.nr; i++) {
		const struct rank_span *one = &talk->items.items[i];
		const struct rank_span *w = work->items.items;

		if (!row || row->process != one->process)
			row = rank_calls_row(ranks, one->process);
		if (!row)
			continue;
		row->communication_ns += one->end_ns - one->start_ns;
		while (at < work->items.nr &&
		       (w[at].process < one->process ||
			(w[at].process == one->process && w[at].end_ns <= one->start_ns)))
			at++;
		for (size_t k = at; k < work->items.nr && w[k].process == one->process &&
				    w[k].start_ns < one->end_ns;
		     k++)
			row->computed_ns += common_ns(one, &w[k]);
	}
}

int rank_calls_overlap(const struct timeline *t, struct ranks *ranks)
{
	CLEANUP(cleanup_free) bool *by_gpu = calloc(t->processes.nr + 1, sizeof(*by_gpu));
	CLEANUP(spans__done) struct spans talk = {0};
	CLEANUP(spans__done) struct spans work = {0};
	int err = by_gpu ? 0 : -ENOMEM;

	for (size_t i = 0; i < ranks->rows.nr && !err; i++)
		by_gpu[ranks->rows.items[i].process] = ranks->rows.items[i].by_gpu;
	for (size_t i = 0; i < ranks->calls.nr && !err; i++) {
		const struct rank_call *c = &ranks->calls.items[i];

		if (c->by_gpu == by_gpu[c->process])
			err = add_span(&talk, c->start_ns, c->end_ns, c->process);
	}
	err = err ? err : add_ops(t, by_gpu, &work);
	err = err ? err : add_kernels(t, by_gpu, &work);
	err = err ? err : spans__unite(&talk);
	err = err ? err : spans__unite(&work);
	if (!err)
		measure(ranks, &talk, &work);
	return err;
}
