/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Places Python's garbage collections among calls of Python functions. A collection lies within the
 * calls that are open when it begins; calls of finalizers lie within it. Only the first and the
 * last operator of a call are known, and either may be a finalizer's.
 */
#include "timeline/model/build.h"

#include <stdlib.h>

#include "base/banned.h"

static int by_thread(const void *a, const void *b)
{
	const struct tl_python_gc *x = a, *y = b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return x->end_ns < y->end_ns ? -1 : x->end_ns > y->end_ns;
}

/* A thread cannot run two at a time. */
static void leave_out_overlapping(struct build *b)
{
	struct timeline *t = b->t;
	size_t nr = 0;

	for (size_t i = 0; i < t->python_gcs.nr; i++) {
		const struct tl_python_gc *gc = &t->python_gcs.items[i];
		const struct tl_python_gc *last = nr ? &t->python_gcs.items[nr - 1] : NULL;

		if (last && last->thread == gc->thread && gc->start_ns < last->end_ns)
			b->counts[TL_TIME_INVALID]++;
		else
			t->python_gcs.items[nr++] = *gc;
	}
	t->python_gcs.nr = nr;
}

/* Finds the collection that began on the thread before this time and ended after it, or NULL. */
static struct tl_python_gc *gc_at(struct timeline *t, uint32_t thread, uint64_t time_ns)
{
	size_t low = 0, high = t->python_gcs.nr;
	struct tl_python_gc *gc;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		gc = &t->python_gcs.items[middle];
		if (gc->thread < thread || (gc->thread == thread && gc->start_ns < time_ns))
			low = middle + 1;
		else
			high = middle;
	}
	gc = low ? &t->python_gcs.items[low - 1] : NULL;
	return gc && gc->thread == thread && gc->end_ns > time_ns ? gc : NULL;
}

/* Whether no op of the thread begins or ends between the two times. */
static bool is_quiet(const struct build *b, uint32_t thread, uint64_t from_ns, uint64_t to_ns)
{
	struct op_gap gap;

	(void)build_op_at(b, thread, from_ns + (to_ns - from_ns) / 2, &gap);
	return gap.low_ns <= from_ns && gap.high_ns >= to_ns;
}

/* An op that outlives the collection in which it began: its end is only a bound. */
static bool is_crossed_at_end(const struct build *b, const struct tl_python_gc *gc)
{
	uint32_t op = build_op_at(b, gc->thread, gc->end_ns, NULL);

	return op != TL_NONE && b->t->ops.items[op].start_ns > gc->start_ns &&
	       b->t->ops.items[op].end_ns > gc->end_ns;
}

/* A call that began before the collection, or goes on after it, holds all of it. */
static void lengthen(struct build *b, struct tl_python_call *call)
{
	const struct tl_python_gc *gc = gc_at(b->t, call->thread, call->end_ns);

	if (gc && call->start_ns <= gc->start_ns &&
	    is_quiet(b, call->thread, call->end_ns, gc->end_ns))
		call->end_ns = gc->end_ns;
	gc = gc_at(b->t, call->thread, call->start_ns);
	if (gc && call->end_ns > gc->end_ns && !is_crossed_at_end(b, gc) &&
	    is_quiet(b, call->thread, gc->start_ns, call->start_ns))
		call->start_ns = gc->start_ns;
}

/* Whatever still overlaps it has an end that is only a bound, or was taken for another call. */
static void mark(struct timeline *t, uint32_t thread, uint64_t start_ns, uint64_t end_ns)
{
	struct tl_python_gc *gc = gc_at(t, thread, start_ns);

	if (gc && end_ns > gc->end_ns)
		gc->crossing = true;
	gc = gc_at(t, thread, end_ns);
	if (gc && start_ns < gc->start_ns)
		gc->crossing = true;
}

void build_python_gcs(struct build *b)
{
	struct timeline *t = b->t;

	if (!t->python_gcs.nr)
		return;
	qsort(t->python_gcs.items, t->python_gcs.nr, sizeof(*t->python_gcs.items), by_thread);
	leave_out_overlapping(b);
	for (size_t i = 0; i < t->python_calls.nr; i++) {
		struct tl_python_call *call = &t->python_calls.items[i];

		lengthen(b, call);
		mark(t, call->thread, call->start_ns, call->end_ns);
	}
	for (size_t i = 0; i < t->ops.nr; i++)
		if (!(t->ops.items[i].flags & GP_OP_ASYNC))
			mark(t, t->ops.items[i].thread, t->ops.items[i].start_ns,
			     t->ops.items[i].end_ns);
}
