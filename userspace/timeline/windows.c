/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Windows of a capture within a budget. They are read before everything else: what lies in none of
 * them is no part of the recording. Windows that follow one another at once are one as to what lies
 * in them.
 */
#include "timeline/timeline.h"

#include <errno.h>
#include <stdlib.h>

#include "base/banned.h"
#include "timeline/build.h"

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
		.steps_nr = e->steps_nr,
		.by_steps = e->head.flags & GP_WINDOW_STEPS,
	};
	if (w.end_ns < w.start_ns || w.end_ns >= TL_TIME_END_NS ||
	    w.inside_ns > w.end_ns - w.start_ns) {
		b->counts[TL_TIME_INVALID]++;
		return 0;
	}
	if (e->all_steps_nr < b->least_steps_nr)
		b->least_steps_nr = e->all_steps_nr;
	b->last_steps_nr = e->all_steps_nr;
	return w.start_ns < w.end_ns ? vec_push(&b->t->windows, w) : 0;
}

static int compare(const void *a, const void *b)
{
	const struct tl_window *x = a, *y = b;

	return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

/* Of several captures merged into one: what is in any is in. */
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

/* Windows of steps stand for all steps, those by time for all time: only one kind can be used. */
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
	b->windows_unused_nr = t->windows.nr - kept;
	t->windows.nr = kept;
}

int build_windows(struct build *b, struct recording *rec)
{
	struct timeline *t = b->t;
	int err;

	if (!recording__meta(rec, "overhead_pct"))
		return 0;
	b->has_windows = true;
	b->least_steps_nr = UINT64_MAX;
	err = recording__each_event(rec, read_window, b);
	if (err < 0)
		return err;
	if (t->windows.nr)
		qsort(t->windows.items, t->windows.nr, sizeof(*t->windows.items), compare);
	join_overlapping(t);
	t->windows_overlap |= recording__meta(rec, "merged") != NULL;
	/* From where on they were not seen all the time, nobody knows. */
	if (b->last_steps_nr > b->least_steps_nr)
		t->all_steps_nr = b->last_steps_nr - b->least_steps_nr;
	if (t->all_steps_nr)
		keep_one_kind(b);
	return 0;
}

static int add_gap(struct timeline *t, uint64_t start_ns, uint64_t end_ns)
{
	struct tl_pause p = {.start_ns = start_ns, .end_ns = end_ns, .cpu = true, .gpu = true};

	return start_ns < end_ns ? vec_push(&t->pauses, p) : 0;
}

int build_window_gaps(struct build *b)
{
	struct timeline *t = b->t;
	uint64_t at = t->start_ns;
	int err = 0;

	for (size_t i = 0; i < t->windows.nr && !err && b->has_windows; i++) {
		err = add_gap(t, at, t->windows.items[i].start_ns);
		at = t->windows.items[i].end_ns;
	}
	return err || !b->has_windows ? err : add_gap(t, at, t->end_ns);
}

uint64_t timeline__wanted_ns(const struct timeline *t)
{
	uint64_t ns = t->end_ns > t->start_ns ? t->end_ns - t->start_ns : 0;

	return ns > t->unwanted_ns ? ns - t->unwanted_ns : 0;
}

uint32_t timeline__window_at(const struct timeline *t, uint64_t time_ns)
{
	size_t low = 0, high = t->windows.nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (t->windows.items[middle].start_ns <= time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low && time_ns < t->windows.items[low - 1].end_ns ? (uint32_t)low - 1 : TL_NONE;
}

bool timeline__in_windows(const struct timeline *t, uint64_t from_ns, uint64_t to_ns)
{
	uint32_t at = timeline__window_at(t, from_ns);

	if (at == TL_NONE)
		return false;
	while (t->windows.items[at].end_ns < to_ns && at + 1 < t->windows.nr &&
	       t->windows.items[at + 1].start_ns == t->windows.items[at].end_ns)
		at++;
	return to_ns <= t->windows.items[at].end_ns;
}
