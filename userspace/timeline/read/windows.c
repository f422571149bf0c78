/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Reads the windows of a capture within a budget, before everything else: events in none of them do
 * not belong to the recording. Windows that follow each other at once act as one.
 */
#include "timeline/model/timeline.h"

#include <errno.h>
#include <stdlib.h>

#include "base/banned.h"
#include "timeline/model/build.h"
#include "timeline/read/estimate.h"

static int read_window(const void *event, size_t bytes, void *arg)
{
	const struct gp_ev_window *e = event;
	struct build *b = arg;
	struct tl_window w;

	if (e->head.kind != GP_EV_WINDOW || bytes < sizeof(*e))
		return 0;
	w = (struct tl_window){
		.start_ns = e->start_ns,
		.end_ns = e->head.time_ns,
		.cost_ns = e->cost_ns,
		.inside_ns = e->inside_ns,
		.all_steps_nr = e->all_steps_nr,
		.steps_nr = e->steps_nr,
		.by_steps = e->head.flags & GP_WINDOW_STEPS,
	};
	if (w.end_ns < w.start_ns || w.end_ns >= TL_TIME_END_NS ||
	    w.inside_ns > w.end_ns - w.start_ns) {
		b->counts[TL_TIME_INVALID]++;
		return 0;
	}
	if (e->all_steps_nr < b->windows.least_steps_nr)
		b->windows.least_steps_nr = e->all_steps_nr;
	b->windows.last_steps_nr = e->all_steps_nr;
	b->windows.any_marks |= b->windows.of_gpu;
	return w.start_ns < w.end_ns ? vec_push(&b->t->windows, w) : 0;
}

static int compare(const void *a, const void *b)
{
	const struct tl_window *x = a, *y = b;

	return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

/* Joins overlapping windows, which merged captures have. */
static void join_overlapping(struct timeline *t)
{
	size_t kept = 0;

	for (size_t i = 0; i < t->windows.nr; i++) {
		const struct tl_window *w = &t->windows.items[i];
		struct tl_window *last = kept ? &t->windows.items[kept - 1] : NULL;

		if (!last || w->start_ns >= last->end_ns) {
			t->windows.items[kept++] = *w;
			continue;
		}
		t->windows_overlap = true;
		if (w->end_ns > last->end_ns)
			last->end_ns = w->end_ns;
	}
	t->windows.nr = kept;
}

/* Windows by steps stand for all steps, those by time for all time. Only one kind can be used. */
static void keep_one_kind(struct build *b)
{
	struct timeline *t = b->t;
	size_t steps_nr = 0, kept = 0;
	bool by_steps;

	for (size_t i = 0; i < t->windows.nr; i++)
		steps_nr += t->windows.items[i].by_steps;
	by_steps = 2 * steps_nr >= t->windows.nr;
	for (size_t i = 0; i < t->windows.nr && by_steps; i++)
		if (t->windows.items[i].by_steps)
			t->windows.items[kept++] = t->windows.items[i];
	if (!by_steps)
		return;
	b->windows.unused_nr = t->windows.nr - kept;
	t->windows.nr = kept;
}

int build_windows(struct build *b, struct recording *rec)
{
	struct timeline *t = b->t;
	int err;

	b->windows.exact = recording__meta(rec, "overhead_pct");
	b->windows.of_gpu = !b->windows.exact && recording__meta(rec, "gpu_windows");
	/* Windows of one part say nothing about the other parts, so nothing is estimated. */
	t->gpu_partial = b->windows.of_gpu && recording__meta(rec, "merged");
	b->windows.of_gpu = t->gpu_in_windows = b->windows.of_gpu && !t->gpu_partial;
	if (!b->windows.exact && !b->windows.of_gpu)
		return 0;
	b->windows.least_steps_nr = UINT64_MAX;
	err = recording__each_event(rec, read_window, b);
	if (err < 0)
		return err;
	if (t->windows.nr)
		qsort(t->windows.items, t->windows.nr, sizeof(*t->windows.items), compare);
	join_overlapping(t);
	t->windows_overlap |= recording__meta(rec, "merged") != NULL;
	/* Nobody knows from when on steps were no longer all seen. */
	if (b->windows.last_steps_nr > b->windows.least_steps_nr)
		t->all_steps_nr = b->windows.last_steps_nr - b->windows.least_steps_nr;
	if (t->all_steps_nr)
		keep_one_kind(b);
	return 0;
}

static int add_gap(struct build *b, uint64_t start_ns, uint64_t end_ns)
{
	struct tl_pause p = {
		.start_ns = start_ns, .end_ns = end_ns, .cpu = b->windows.exact, .gpu = true};

	return start_ns < end_ns ? vec_push(&b->t->pauses, p) : 0;
}

int build_window_gaps(struct build *b)
{
	const struct timeline *t = b->t;
	uint64_t at = t->start_ns;
	int err = 0;

	if (!b->windows.exact && !b->windows.of_gpu)
		return 0;
	/* Without any windows only unwanted time was unobserved. */
	for (size_t i = 0; i < b->windows.gpu_unwanted.nr && !t->windows.nr && !err; i++)
		err = add_gap(b, b->windows.gpu_unwanted.items[i].start_ns,
			      b->windows.gpu_unwanted.items[i].end_ns);
	if (b->windows.of_gpu && !t->windows.nr)
		return err;
	for (size_t i = 0; i < t->windows.nr && !err; i++) {
		err = add_gap(b, at, t->windows.items[i].start_ns);
		at = t->windows.items[i].end_ns;
	}
	return err ? err : add_gap(b, at, t->end_ns);
}

static int compare_spans(const void *a, const void *b)
{
	const struct tl_span *x = a, *y = b;

	return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

/* Sorts spans by time and joins those that touch. Returns how many are left. */
static size_t join_spans(struct tl_span *items, size_t nr)
{
	struct tl_span *last = NULL;
	size_t kept = 0;

	if (nr)
		qsort(items, nr, sizeof(*items), compare_spans);
	for (size_t i = 0; i < nr; i++) {
		if (last && items[i].start_ns <= last->end_ns) {
			if (items[i].end_ns > last->end_ns)
				last->end_ns = items[i].end_ns;
			continue;
		}
		items[kept] = items[i];
		if (last)
			items[kept].before_ns = last->before_ns + last->end_ns - last->start_ns;
		last = &items[kept++];
	}
	return kept;
}

void build_gpu_unwanted(struct build *b)
{
	struct timeline *t = b->t;

	b->windows.gpu_unwanted.nr =
		join_spans(b->windows.gpu_unwanted.items, b->windows.gpu_unwanted.nr);
	for (size_t i = 0; i < b->windows.gpu_unwanted.nr; i++) {
		const struct tl_span *s = &b->windows.gpu_unwanted.items[i];
		uint64_t from = s->start_ns > t->start_ns ? s->start_ns : t->start_ns;
		uint64_t to = s->end_ns < t->end_ns ? s->end_ns : t->end_ns;

		t->unwanted_ns += to > from ? to - from : 0;
	}
}

int build_gpu_unobserved(struct build *b)
{
	int err = 0;

	for (size_t i = 0; i < b->t->pauses.nr && !err; i++) {
		const struct tl_pause *p = &b->t->pauses.items[i];

		if (p->gpu && p->start_ns < p->end_ns)
			err = vec_push(
				&b->windows.gpu_unobserved,
				((struct tl_span){.start_ns = p->start_ns, .end_ns = p->end_ns}));
	}
	b->windows.gpu_unobserved.nr =
		join_spans(b->windows.gpu_unobserved.items, b->windows.gpu_unobserved.nr);
	return err;
}

/* The summed duration of the spans up to a time. */
static uint64_t within_until(const struct tl_span *spans, size_t nr, uint64_t time_ns)
{
	size_t low = 0, high = nr;
	const struct tl_span *last;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (spans[middle].start_ns <= time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return 0;
	last = &spans[low - 1];
	return last->before_ns + (time_ns < last->end_ns ? time_ns : last->end_ns) - last->start_ns;
}

/* How much of the time lies in no span. */
static uint64_t outside(const struct tl_span *spans, size_t nr, uint64_t from_ns, uint64_t to_ns)
{
	if (from_ns >= to_ns)
		return 0;
	return to_ns - from_ns -
	       (within_until(spans, nr, to_ns) - within_until(spans, nr, from_ns));
}

uint64_t build_gpu_seen_ns(const struct build *b, uint64_t from_ns, uint64_t to_ns)
{
	return outside(b->windows.gpu_unobserved.items, b->windows.gpu_unobserved.nr, from_ns,
		       to_ns);
}

/* The length of a step is the mean of this many steps, or of those in this many windows before and
 * behind. */
#define ENOUGH_STEPS 16
#define NEIGHBOURS   4

/* The length that it would have had without being observed, like the rest of the time. */
static double unwatched_ns(const struct tl_window *w)
{
	uint64_t ns = w->end_ns - w->start_ns;

	return (double)(ns > w->inside_ns ? ns - w->inside_ns : ns);
}

/* The length that the window was expected to have when it opened. Its steps take as long as they
 * do: that the few here happened to be quick or slow must not count. */
static double expected_ns(const struct timeline *t, size_t at)
{
	const struct tl_window *w = &t->windows.items[at];
	double ns = 0, steps_nr = 0;

	if (!w->by_steps || !w->steps_nr)
		return unwatched_ns(w);
	for (size_t k = 0; k <= NEIGHBOURS && steps_nr < ENOUGH_STEPS; k++) {
		for (int side = 0; side < (k ? 2 : 1); side++) {
			size_t i = side ? at - k : at + k; /* below 0 it is past the end */

			if (i >= t->windows.nr || !t->windows.items[i].by_steps)
				continue;
			ns += unwatched_ns(&t->windows.items[i]);
			steps_nr += t->windows.items[i].steps_nr;
		}
	}
	return ns / steps_nr * w->steps_nr;
}

/* Weighs windows that are all by steps, where all steps since the one before are known. */
static void weigh_by_steps(struct build *b)
{
	uint64_t before = b->windows.least_steps_nr;

	for (size_t i = 0; i < b->t->windows.nr; i++) {
		struct tl_window *w = &b->t->windows.items[i];
		uint64_t until = w->all_steps_nr > before ? w->all_steps_nr : before;

		w->weight = 1;
		if (w->steps_nr && until - before > w->steps_nr)
			w->weight = (double)(until - before) / w->steps_nr;
		before = until;
	}
}

static void weigh_by_time(struct build *b)
{
	struct timeline *t = b->t;
	uint64_t from = t->start_ns;

	for (size_t i = 0; i < t->windows.nr; i++) {
		struct tl_window *w = &t->windows.items[i];
		uint64_t before = 0;

		if (w->start_ns > from)
			before = outside(b->windows.gpu_unwanted.items, b->windows.gpu_unwanted.nr,
					 from, w->start_ns);
		t->gpu_estimated |= b->windows.of_gpu && before;
		w->weight = 1 + (double)before / expected_ns(t, i);
		from = w->end_ns;
	}
}

void build_window_weights(struct build *b)
{
	if (estimate_is_by_steps(b->t))
		weigh_by_steps(b);
	else
		weigh_by_time(b);
}
