/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Means within a window, so that steps may differ by turns; the median over windows, so that a
 * window in which something else happened does no harm.
 */
#include "capture/policy/step_cost.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PAIRS_MIN 5

static void add(struct step_cost_sum *sum, uint32_t nr, double cpu_ns, uint32_t ops)
{
	sum->cpu_ns += cpu_ns;
	sum->ops += ops;
	sum->nr += nr;
}

/* A window has been, and plain steps on both its sides. */
static void take_pair(struct step_cost *s)
{
	struct step_cost_sum *t = &s->traced;
	double plain = s->before.cpu_ns + s->after.cpu_ns;
	uint32_t plain_nr = s->before.nr + s->after.nr;

	if (s->before.nr && s->after.nr && t->nr && t->ops) {
		s->pairs[s->pairs_at] = (t->cpu_ns - plain / plain_nr * t->nr) / (double)t->ops;
		s->pairs_at = (s->pairs_at + 1) % STEP_COST_PAIRS;
		s->pairs_nr += s->pairs_nr < STEP_COST_PAIRS;
	}
	s->before = s->traced = s->after = (struct step_cost_sum){0};
}

static void add_plain(struct step_cost *s, double cpu_ns)
{
	if (s->traced.nr && s->after.nr < STEP_COST_NEAR) {
		add(&s->after, 1, cpu_ns, 0);
		if (s->after.nr == STEP_COST_NEAR)
			take_pair(s);
	}
	s->plain_ns[s->plain_at] = cpu_ns;
	s->plain_at = (s->plain_at + 1) % STEP_COST_NEAR;
	s->plain_nr += s->plain_nr < STEP_COST_NEAR;
}

void step_cost__steps(struct step_cost *s, bool traced, uint32_t nr, uint64_t cpu_ns, uint32_t ops)
{
	if (!nr)
		return;
	if (!traced) {
		add_plain(s, (double)cpu_ns / nr);
		return;
	}
	if (s->after.nr)
		take_pair(s);
	if (!s->traced.nr) {
		for (size_t i = 0; i < s->plain_nr; i++)
			add(&s->before, 1, s->plain_ns[i], 0);
		s->plain_nr = s->plain_at = 0;
	}
	add(&s->traced, nr, (double)cpu_ns, ops);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

bool step_cost__per_op(const struct step_cost *s, double *ret_ns, double *ret_error_ns)
{
	double sorted[STEP_COST_PAIRS];
	size_t nr = s->pairs_nr;

	if (nr < PAIRS_MIN)
		return false;
	memcpy(sorted, s->pairs, nr * sizeof(*sorted));
	qsort(sorted, nr, sizeof(*sorted), compare);
	*ret_ns = (sorted[(nr - 1) / 2] + sorted[nr / 2]) / 2;
	/* Of a median of normal values, their deviation from the middle half. */
	*ret_error_ns = 1.2533 * (sorted[nr * 3 / 4] - sorted[nr / 4]) / 1.349 / sqrt((double)nr);
	return true;
}
