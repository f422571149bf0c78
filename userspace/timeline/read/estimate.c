/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The ratio estimator of survey sampling. A window of m steps (or m nanoseconds) has the sum y and
 * stands for w windows: itself and what has been since the one before. Of M steps in all the total
 * is M * sum(w * y) / sum(w * m), and its variance follows from the residuals
 * w * (y - m * sum(w * y) / sum(w * m)), less by the share that was seen of what the window stands
 * for (Horvitz and Thompson's estimator). Windows have their length set before they open
 * (capture/policy/budget.h): so neither it nor the weight depends on what the window saw.
 */
#include "timeline/read/estimate.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/banned.h"
#include "timeline/model/timeline.h"

/* Sums of one column of one row over all windows; a window without a cell has y = 0. Squares are
 * weighted by the share of what the window stands for that was not seen. */
struct moments {
	double y, yy, ym;
};

/* Sizes of the windows. */
struct sizes {
	double n, m, mm, all;
	bool by_steps;
};

void estimator__done(struct estimator *e)
{
	hash__done(&e->cell_of);
	vec_done(&e->cells);
}

int estimator__add(struct estimator *e, uint32_t row, uint64_t start_ns,
		   const double values[ESTIMATES_NR])
{
	uint32_t window = timeline__window_at(e->t, start_ns);
	uint64_t key = (uint64_t)row << 32 | window;
	struct estimate_cell *cell;
	const uint64_t *known;

	if (window == TL_NONE)
		return 0;
	known = hash__find(&e->cell_of, key);
	if (!known) {
		struct estimate_cell made = {.row = row, .window = window};

		if (hash__set(&e->cell_of, key, e->cells.nr) || vec_push(&e->cells, made))
			return -ENOMEM;
	}
	cell = &e->cells.items[known ? *known : e->cells.nr - 1];
	for (int i = 0; i < ESTIMATES_NR; i++)
		cell->sums[i] += values[i];
	return 0;
}

bool estimate_is_possible(const struct timeline *t)
{
	return t->windows.nr && !t->windows_overlap;
}

bool estimate_is_by_steps(const struct timeline *t)
{
	for (size_t i = 0; i < t->windows.nr; i++)
		if (!t->windows.items[i].by_steps)
			return false;
	return t->windows.nr && t->all_steps_nr;
}

static double size_of(const struct tl_window *w, bool by_steps)
{
	/* The length that it would have had without being observed, like the rest of the time. */
	return w->weight *
	       (by_steps ? w->steps_nr : (double)(w->end_ns - w->start_ns - w->inside_ns));
}

/* The unseen share of what the window stands for. */
static double unseen_of(const struct sizes *s, const struct tl_window *w)
{
	return s->all > 0 ? fmax(0, 1 - s->m / (w->weight * s->all)) : 0;
}

static struct sizes sizes_of(const struct timeline *t)
{
	double watched = 0, seen = 0;
	struct sizes s = {.n = (double)t->windows.nr, .by_steps = estimate_is_by_steps(t)};

	for (size_t i = 0; i < t->windows.nr; i++) {
		s.m += size_of(&t->windows.items[i], s.by_steps);
		seen += size_of(&t->windows.items[i], s.by_steps) / t->windows.items[i].weight;
		watched += (double)t->windows.items[i].inside_ns;
	}
	s.all = s.by_steps ? (double)t->all_steps_nr : (double)timeline__wanted_ns(t) - watched;
	s.all = fmax(s.all, seen);
	for (size_t i = 0; i < t->windows.nr && s.m > 0; i++) {
		double m = size_of(&t->windows.items[i], s.by_steps);

		s.mm += unseen_of(&s, &t->windows.items[i]) * m * m;
	}
	return s;
}

double estimate_expansion(const struct timeline *t)
{
	struct sizes s = sizes_of(t);

	return estimate_is_possible(t) && s.m > 0 ? s.all / s.m : 0;
}

static struct estimate estimate_of(const struct sizes *s, const struct moments *k)
{
	double ratio = s->m > 0 ? k->y / s->m : 0;
	double residuals = fmax(0, k->yy - 2 * ratio * k->ym + ratio * ratio * s->mm);
	struct estimate e = {.value = ratio * s->all, .error = NAN};

	/* Rounding keeps sums of many squares from being exactly zero. */
	if (residuals < 1e-9 * k->yy)
		residuals = 0;
	if (s->mm <= 0)
		e.error = 0;
	else if (s->n > 1)
		e.error = s->all * sqrt(residuals / (s->n * (s->n - 1))) / (s->m / s->n);
	return e;
}

int estimator__finish(struct estimator *e, uint32_t rows_nr,
		      struct estimate (**ret_rows)[ESTIMATES_NR])
{
	struct estimate(*rows)[ESTIMATES_NR] = calloc(rows_nr + 1, sizeof(*rows));
	struct moments(*moments)[ESTIMATES_NR] = calloc(rows_nr + 1, sizeof(*moments));
	struct sizes s = sizes_of(e->t);

	*ret_rows = rows;
	if (!rows || !moments) {
		free(rows);
		free(moments);
		return -ENOMEM;
	}
	for (size_t i = 0; i < e->cells.nr; i++) {
		const struct estimate_cell *c = &e->cells.items[i];
		const struct tl_window *w = &e->t->windows.items[c->window];
		double m = size_of(w, s.by_steps), unseen = unseen_of(&s, w);

		for (int k = 0; k < ESTIMATES_NR && c->row < rows_nr; k++) {
			double y = w->weight * c->sums[k];

			moments[c->row][k].y += y;
			moments[c->row][k].yy += unseen * y * y;
			moments[c->row][k].ym += unseen * y * m;
		}
	}
	for (uint32_t i = 0; i < rows_nr; i++)
		for (int k = 0; k < ESTIMATES_NR; k++)
			rows[i][k] = estimate_of(&s, &moments[i][k]);
	free(moments);
	return 0;
}
