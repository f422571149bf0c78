/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Reads samples and their stacks. The frames of a stack show the operators that a sample is in: the
 * innermost is the one that was running, the others called it.
 */
#include "timeline/read/context.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"

/* Samples with a greater weight are refused. */
#define WEIGHT_END_NS (1ULL << 50)
#define SAMPLES_END   (1U << 24)
/* Rates outside are refused. */
#define HZ_LEAST 0.01
#define HZ_MOST	 1e6

/* Adds an operator to those of the last stack, unless it is there. */
static int add_stack_op(struct build *b, struct tl_sampled_stack *s, uint32_t name_id,
			uint32_t scope)
{
	struct timeline *t = b->t;
	const char *overload = "";
	struct tl_stack_op op = {.scope = scope};

	op.name = build_intern(b, recording__name(t->recording, name_id, &overload));
	op.overload = build_intern(b, overload);
	if (b->err)
		return b->err;
	if (s->ops_nr == GP_OP_DEPTH)
		return 0;
	for (uint32_t i = 0; i < s->ops_nr; i++)
		if (t->stack_ops.items[s->ops_at + i].name == op.name)
			return 0;
	s->ops_nr++;
	return vec_push(&t->stack_ops, op);
}

/* Finds or makes an entry of timeline.sampled_stacks. TL_NONE with b->err set. */
static uint32_t sampled_stack(struct build *b, uint32_t id)
{
	const uint64_t *known = hash__find(&b->samples.stack_of, id);
	struct tl_sampled_stack s = {.id = id, .ops_at = (uint32_t)b->t->stack_ops.nr};
	uint32_t name, scope;
	size_t nr;

	if (known)
		return (uint32_t)*known;
	s.frames = recording__stack(b->t->recording, id, &nr, &s.flags);
	s.nr = (uint32_t)nr;
	for (uint32_t i = 0; i < s.nr && !b->err; i++)
		if (recording__frame_op(b->t->recording, s.frames[i], &name, &scope))
			b->err = add_stack_op(b, &s, name, scope);
	if (!b->err && (hash__set(&b->samples.stack_of, id, b->t->sampled_stacks.nr) ||
			vec_push(&b->t->sampled_stacks, s)))
		b->err = -ENOMEM;
	return b->err ? TL_NONE : (uint32_t)b->t->sampled_stacks.nr - 1;
}

int build_sample(struct build *b, const struct gp_ev_sample *e)
{
	struct tl_sample s = {
		.start_ns = e->start_ns,
		.end_ns = e->head.time_ns,
		.weight_ns = e->weight_ns,
		.nr = e->nr,
		.syscall = e->syscall,
		.flags = e->head.flags,
	};
	const struct tl_sampled_stack *stack;

	if (s.end_ns < s.start_ns || s.end_ns >= TL_TIME_END_NS || s.weight_ns >= WEIGHT_END_NS ||
	    !s.nr || s.nr >= SAMPLES_END) {
		b->counts[TL_TIME_INVALID]++;
		return 0;
	}
	if (!build_in_window(b, s.start_ns, s.end_ns))
		return 0;
	s.thread = build_thread_of(b, &e->head);
	if (!b->err)
		s.stack = sampled_stack(b, e->stack_id);
	if (b->err)
		return b->err;
	stack = &b->t->sampled_stacks.items[s.stack];
	b->samples.stackless_nr += stack->nr ? 0 : s.nr;
	b->samples.cut_nr += stack->nr && tl_stack_is_cut(stack->flags) ? s.nr : 0;
	b->samples.searched_nr += stack->flags & GP_STACK_SEARCHED ? s.nr : 0;
	b->t->sampled = true;
	build_extend_time(b, s.start_ns, s.end_ns);
	return vec_push(&b->t->samples, s);
}

/* The rate under a key; in a merged recording whose parts differ, the first one's. */
static double rate_of(const struct timeline *t, const char *key)
{
	const char *text = recording__meta(t->recording, key);
	double hz = text ? strtod(text, NULL) : 0;

	return hz >= HZ_LEAST && hz <= HZ_MOST ? hz : 0;
}

double timeline__sample_hz(const struct timeline *t)
{
	double hz = t->sampled ? rate_of(t, "sample_hz_mean") : 0;

	/* Falls back to the requested rate where the actual one is not recorded. */
	return hz > 0 || !t->sampled ? hz : rate_of(t, "sample_hz");
}

static int by_thread_and_time(const void *a, const void *b)
{
	const struct tl_sample *x = a, *y = b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

int build_samples(struct build *b)
{
	const char *mode = recording__meta(b->t->recording, "mode");
	struct timeline *t = b->t;

	t->sampled |= mode && !strcmp(mode, "sample");
	if (t->samples.nr)
		qsort(t->samples.items, t->samples.nr, sizeof(*t->samples.items),
		      by_thread_and_time);
	return 0;
}
