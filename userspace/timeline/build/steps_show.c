/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Gives each step an op, merged into the sorted ops. What lies in the step on its thread, and had
 * the step's parent, becomes its child.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "base/cleanup.h"
#include "common/step_annotations.h"
#include "timeline/read/context.h"

struct merge {
	struct build *b;
	const struct step_place *places;
	uint32_t *before; /* of each place, in order: the old index of the op that follows it */
	uint32_t places_nr;
};

static int by_place(const void *a, const void *b)
{
	const struct step_place *x = a, *y = b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return x->step < y->step ? -1 : x->step > y->step;
}

/* Whether the step stands before the op of this index. */
static bool goes_before(const struct step_place *p, const struct tl_op *op, uint32_t index)
{
	if (p->thread != op->thread)
		return p->thread < op->thread;
	if (p->parent != TL_NONE && index <= p->parent)
		return false;
	return p->start_ns < op->start_ns ||
	       (p->start_ns == op->start_ns && p->end_ns >= op->end_ns);
}

static void find_befores(struct merge *m)
{
	const struct timeline *t = m->b->t;
	uint32_t next = 0;

	for (uint32_t i = 0; i < t->ops.nr; i++)
		while (next < m->places_nr && goes_before(&m->places[next], &t->ops.items[i], i))
			m->before[next++] = i;
	while (next < m->places_nr)
		m->before[next++] = (uint32_t)t->ops.nr;
}

/* Computes the new index of an op: steps that stand before it push it back. */
static uint32_t moved(const struct merge *m, uint32_t op)
{
	uint32_t low = 0, high = m->places_nr;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (m->before[middle] <= op)
			low = middle + 1;
		else
			high = middle;
	}
	return op + low;
}

static void put_step(struct merge *m, const struct step_place *p, uint32_t at)
{
	struct timeline *t = m->b->t;
	struct tl_step *step = &t->steps.items[p->step];
	char name[40];

	(void)snprintf(name, sizeof(name), STEP_PROFILER_PREFIX "%llu",
		       (unsigned long long)step->number);
	step->op = at;
	m->b->tree.parents.items[at] = 0;
	t->ops.items[at] = (struct tl_op){
		.start_ns = p->start_ns,
		.end_ns = p->end_ns,
		.name = build_intern(m->b, name),
		.overload = build_intern(m->b, ""),
		.thread = p->thread,
		.parent = p->parent == TL_NONE ? TL_NONE : moved(m, p->parent),
		.scope = GP_SCOPE_USER,
		.flags = p->flags,
		.inputs = TL_NONE,
		.module_call = TL_NONE,
		.sequence_nr = -1,
		.step = true,
	};
}

/* Merges in place, from the end, where there is room: ops may be most of the memory in use. */
static void merge_all(struct merge *m)
{
	struct timeline *t = m->b->t;
	uint32_t next = m->places_nr, from = (uint32_t)t->ops.nr, to = from + next;

	for (;;) {
		while (next && m->before[next - 1] == from)
			put_step(m, &m->places[--next], --to);
		if (!from || !next)
			break;
		t->ops.items[--to] = t->ops.items[--from];
		m->b->tree.parents.items[to] = m->b->tree.parents.items[from];
	}
}

/* Steps get the new index of their op. */
static void renumber_parents(const struct merge *m)
{
	struct timeline *t = m->b->t;

	for (size_t i = 0; i < t->ops.nr; i++)
		if (t->ops.items[i].parent != TL_NONE && !t->ops.items[i].step)
			t->ops.items[i].parent = moved(m, t->ops.items[i].parent);
}

static void adopt(struct timeline *t, uint32_t step)
{
	const struct tl_op *s = &t->ops.items[step];

	for (uint32_t i = step + 1; i < t->ops.nr; i++) {
		struct tl_op *op = &t->ops.items[i];

		if (op->thread != s->thread || op->start_ns >= s->end_ns)
			return;
		if (op->parent == s->parent && !op->step && !(op->flags & GP_OP_ASYNC) &&
		    op->end_ns <= s->end_ns)
			op->parent = step;
	}
}

/* Adapts everything that refers to ops by index. */
static void renumber(const struct merge *m)
{
	struct build *b = m->b;
	struct timeline *t = b->t;
	struct tl_op *ops = t->ops.items;

	renumber_parents(m);
	for (size_t i = 0; i < b->tree.missing.nr; i++)
		b->tree.missing.items[i].index = moved(m, b->tree.missing.items[i].index);
	for (uint32_t i = 0; i < t->ops.nr; i++)
		if (ops[i].step)
			adopt(t, i);
	for (size_t i = 0; i < t->ops.nr; i++)
		ops[i].depth = ops[i].parent == TL_NONE ? 0 : ops[ops[i].parent].depth + 1;
	for (size_t i = 0; i < t->step_series.nr; i++) {
		const struct tl_step_series *s = &t->step_series.items[i];

		for (uint32_t k = s->first; s->by == TL_STEPS_PROFILER && k < s->first + s->nr; k++)
			t->steps.items[k].op = moved(m, t->steps.items[k].op);
	}
}

int build_show_steps(struct build *b)
{
	struct timeline *t = b->t;
	uint32_t places_nr = (uint32_t)b->steps.places.nr;
	CLEANUP(cleanup_free) uint32_t *before = malloc((places_nr + 1UL) * sizeof(*before));
	struct merge m = {
		.b = b, .places = b->steps.places.items, .before = before, .places_nr = places_nr};

	if (t->ops.nr + b->steps.places.nr >= TL_NONE - 1)
		return -EFBIG;
	if (!before || vec_reserve(&t->ops, places_nr) || vec_reserve(&b->tree.parents, places_nr))
		return -ENOMEM;
	qsort(b->steps.places.items, b->steps.places.nr, sizeof(*b->steps.places.items), by_place);
	find_befores(&m);
	merge_all(&m);
	t->ops.nr += places_nr;
	b->tree.parents.nr += places_nr;
	renumber(&m);
	return b->err;
}
