/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * An op for each step, merged into the sorted ops: what lies in a step on its thread, and had the
 * step's parent, becomes its child.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "base/cleanup.h"
#include "timeline/build.h"

struct merge {
	struct build *b;
	const struct step_place *places;
	struct tl_op *ops; /* old, then new ones */
	uint64_t *parents;
	uint32_t *moved; /* old index -> new */
	uint32_t nr;
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

static int put_step(struct merge *m, const struct step_place *p)
{
	struct tl_step *step = &m->b->t->steps.items[p->step];
	char name[40];

	(void)snprintf(name, sizeof(name), "ProfilerStep#%llu", (unsigned long long)step->number);
	step->op = m->nr;
	m->parents[m->nr] = 0;
	m->ops[m->nr++] = (struct tl_op){
		.start_ns = p->start_ns,
		.end_ns = p->end_ns,
		.name = build_keep(m->b, name),
		.overload = build_keep(m->b, ""),
		.thread = p->thread,
		.parent = p->parent == TL_NONE ? TL_NONE : m->moved[p->parent],
		.scope = GP_SCOPE_USER,
		.flags = p->flags,
		.inputs = TL_NONE,
		.module_call = TL_NONE,
		.sequence_nr = -1,
		.step = true,
	};
	return m->b->err;
}

static int merge_all(struct merge *m)
{
	const struct timeline *t = m->b->t;
	size_t next = 0, places_nr = m->b->step_places.nr;
	int err = 0;

	for (uint32_t i = 0; i <= t->ops.nr && !err; i++) {
		while (next < places_nr && !err &&
		       (i == t->ops.nr || goes_before(&m->places[next], &t->ops.items[i], i)))
			err = put_step(m, &m->places[next++]);
		if (err || i == t->ops.nr)
			break;
		m->moved[i] = m->nr;
		m->parents[m->nr] = m->b->parents.items[i];
		m->ops[m->nr] = t->ops.items[i];
		if (m->ops[m->nr].parent != TL_NONE)
			m->ops[m->nr].parent = m->moved[m->ops[m->nr].parent];
		m->nr++;
	}
	return err;
}

static void adopt(struct merge *m, uint32_t step)
{
	const struct tl_op *s = &m->ops[step];

	for (uint32_t i = step + 1; i < m->nr; i++) {
		struct tl_op *op = &m->ops[i];

		if (op->thread != s->thread || op->start_ns >= s->end_ns)
			return;
		if (op->parent == s->parent && !op->step && !(op->flags & GP_OP_ASYNC) &&
		    op->end_ns <= s->end_ns)
			op->parent = step;
	}
}

/* Everything that names ops by their place follows. */
static void renumber(struct merge *m)
{
	struct build *b = m->b;
	struct timeline *t = b->t;

	for (size_t i = 0; i < b->missing.nr; i++)
		b->missing.items[i].index = m->moved[b->missing.items[i].index];
	for (uint32_t i = 0; i < m->nr; i++)
		if (m->ops[i].step)
			adopt(m, i);
	for (uint32_t i = 0; i < m->nr; i++)
		m->ops[i].depth =
			m->ops[i].parent == TL_NONE ? 0 : m->ops[m->ops[i].parent].depth + 1;
	for (size_t i = 0; i < t->step_series.nr; i++) {
		const struct tl_step_series *s = &t->step_series.items[i];

		for (uint32_t k = s->first; s->by == TL_STEPS_PROFILER && k < s->first + s->nr; k++)
			t->steps.items[k].op = m->moved[t->steps.items[k].op];
	}
}

int build_show_steps(struct build *b)
{
	struct timeline *t = b->t;
	size_t nr = t->ops.nr + b->step_places.nr;
	CLEANUP(cleanup_free) struct tl_op *ops = malloc(nr * sizeof(*ops));
	CLEANUP(cleanup_free) uint64_t *new_parents = malloc((nr + 1) * sizeof(*new_parents));
	CLEANUP(cleanup_free) uint32_t *moved = malloc((t->ops.nr + 1) * sizeof(*moved));
	struct merge m = {.b = b,
			  .places = b->step_places.items,
			  .ops = ops,
			  .parents = new_parents,
			  .moved = moved};
	int err;

	if (!ops || !new_parents || !moved)
		return -ENOMEM;
	if (nr >= TL_NONE - 1)
		return -EFBIG;
	qsort(b->step_places.items, b->step_places.nr, sizeof(*b->step_places.items), by_place);
	err = merge_all(&m);
	if (err)
		return err;
	renumber(&m);
	vec_done(&t->ops);
	t->ops.items = TAKE(ops);
	t->ops.nr = t->ops.cap = nr;
	vec_done(&b->parents);
	b->parents.items = TAKE(new_parents);
	b->parents.nr = b->parents.cap = nr;
	return 0;
}
