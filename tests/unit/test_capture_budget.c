/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The budget's controller against loads that are simulated, and the cost of an operator from the
 * CPU time of steps.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "capture/budget.h"
#include "capture/step_cost.h"

#define MS 1000000ULL
#define S  1000000000ULL

/* What a target does, and what it costs to look. */
struct load {
	double busy;	/* CPUs in use */
	double step_ms; /* 0: no steps can be seen */
	double traced;	/* cost in a window, of the CPU time */
	double rest;	/* and outside of one */
	double opening_ms;
};

struct run {
	struct budget budget;
	struct budget_account at;
	double step_ns; /* gone of the step at hand */
	double plain_ns, cost_ns;
	uint64_t minute_begin_ns;
	double minute_plain_ns, minute_cost_ns, worst_minute;
	uint32_t windows_nr, by_time_nr, steps_nr, cut_short_nr, window_steps_nr;
	double within_ns, longest_window_cost_ns, window_cost_ns;
	bool by_time, open, in_step;
};

static void begin(struct run *r, double percent)
{
	memset(r, 0, sizeof(*r));
	r->at.now_ns = 5 * S;
	budget__init(&r->budget, percent, &r->at);
	r->minute_begin_ns = r->at.now_ns;
}

static void spend(struct run *r, double ns)
{
	r->at.cpu_ns += (uint64_t)ns;
	r->at.inside_ns += (uint64_t)ns;
	r->at.cost_ns += (uint64_t)ns;
	r->cost_ns += ns;
	r->minute_cost_ns += ns;
	r->window_cost_ns += r->open ? ns : 0;
}

static void close_window(struct run *r)
{
	budget__closed(&r->budget, r->by_time, r->window_steps_nr, r->within_ns);
	r->open = r->in_step = false;
	r->windows_nr++;
	r->by_time_nr += r->by_time;
	r->steps_nr += r->window_steps_nr;
	r->cut_short_nr += !r->window_steps_nr;
	r->longest_window_cost_ns = fmax(r->longest_window_cost_ns, r->window_cost_ns);
}

static void open_window(struct run *r, const struct load *l)
{
	r->by_time = !l->step_ms || budget__is_hopeless(&r->budget);
	budget__open(&r->budget);
	r->open = true;
	r->window_cost_ns = r->within_ns = 0;
	r->window_steps_nr = 0;
	spend(r, l->opening_ms * MS);
}

/* A step ends, and the next one begins. */
static void step_ends(struct run *r)
{
	if (!r->open)
		return;
	r->window_steps_nr += r->in_step;
	r->in_step = true;
	if (r->window_steps_nr && budget__must_close(&r->budget, true))
		close_window(r);
}

static void tick(struct run *r, const struct load *l, uint64_t dt)
{
	double plain = l->busy * (double)dt;
	double cost = plain * (r->open ? l->traced : l->rest);

	r->at.now_ns += dt;
	r->at.cpu_ns += (uint64_t)plain;
	r->plain_ns += plain;
	r->minute_plain_ns += plain;
	spend(r, cost);
	if (r->open && (r->in_step || r->by_time))
		r->within_ns += cost;
	budget__account(&r->budget, &r->at);
	r->step_ns += (double)dt;
	while (l->step_ms && r->step_ns >= l->step_ms * MS) {
		r->step_ns -= l->step_ms * MS;
		step_ends(r);
	}
	/* Long steps are not watched from their middle. */
	if (!r->open && budget__may_open(&r->budget) &&
	    (l->step_ms < 200 || budget__is_hopeless(&r->budget) ||
	     r->step_ns > 0.9 * l->step_ms * MS))
		open_window(r, l);
	else if (r->open && budget__must_close(&r->budget, r->by_time))
		close_window(r);
}

static void run_for(struct run *r, const struct load *l, uint64_t ns)
{
	for (uint64_t end = r->at.now_ns + ns; r->at.now_ns < end;) {
		tick(r, l, (r->open ? 2 : 50) * MS);
		if (r->at.now_ns - r->minute_begin_ns < 60 * S)
			continue;
		r->worst_minute = fmax(r->worst_minute, r->minute_cost_ns / r->minute_plain_ns);
		r->minute_begin_ns = r->at.now_ns;
		r->minute_cost_ns = r->minute_plain_ns = 0;
	}
}

static const struct load mlp = {
	.busy = 1, .step_ms = 0.4, .traced = 0.6, .rest = 0.0005, .opening_ms = 0.5};

/* What is done while nothing is wanted earns nothing, however much it is. */
static void test_time_that_does_not_count(void **state)
{
	struct run r;
	double tokens_ns, rate;

	begin(&r, 3);
	run_for(&r, &mlp, 60 * S);
	tokens_ns = r.budget.tokens_ns;
	rate = r.budget.rate;
	r.at.now_ns += 600 * S;
	r.at.cpu_ns += 600 * S;
	budget__skip(&r.budget, &r.at);
	assert_true(r.budget.tokens_ns == tokens_ns && r.budget.rate == rate);
	r.at.now_ns += 50 * MS;
	r.at.cpu_ns += 50 * MS;
	budget__account(&r.budget, &r.at);
	assert_true(r.budget.tokens_ns <= tokens_ns + 0.03 * 50 * MS);
}

/* All of it is used, and no more. */
static void test_share_is_kept(void **state)
{
	static const double percents[] = {1, 3, 10};

	for (size_t i = 0; i < 3; i++) {
		struct run r;

		begin(&r, percents[i]);
		run_for(&r, &mlp, 600 * S);
		assert_true(r.cost_ns <= 1.02 * percents[i] / 100 * r.plain_ns);
		assert_true(r.cost_ns >= 0.9 * percents[i] / 100 * r.plain_ns);
		assert_true(r.worst_minute <= 1.15 * percents[i] / 100);
		assert_true(r.windows_nr >= 100);
		assert_int_equal(r.cut_short_nr, 0);
	}
}

/* What costs less than is granted is never switched off: one window, which ends with the run. */
static void test_cheap_load_is_traced_all_the_time(void **state)
{
	struct load l = mlp;
	struct run r;

	l.traced = 0.004;
	begin(&r, 1);
	run_for(&r, &l, 60 * S);
	assert_true(r.open);
	assert_int_equal(r.windows_nr, 0);
	assert_true(r.window_steps_nr > 100000);
}

static void test_first_window_is_bounded(void **state)
{
	struct load l = mlp;
	struct run r;

	l.step_ms = 0.4;
	l.traced = 20;
	begin(&r, 1);
	while (!r.windows_nr)
		run_for(&r, &l, 50 * MS);
	/* One second's worth and the time until someone looks. */
	assert_true(r.longest_window_cost_ns <= 1.3 * 10 * MS * 1.25 + 2 * 20 * 2 * MS);
}

/* Each op costs ten times as much from one moment on: at most one window overruns, and the next
 * minutes pay for it. */
static void test_jump(void **state)
{
	static const double percents[] = {1, 3, 10};

	for (size_t i = 0; i < 3; i++) {
		struct load l = mlp;
		struct run r;

		begin(&r, percents[i]);
		run_for(&r, &l, 120 * S);
		l.step_ms = 4;
		l.traced = 6;
		r.worst_minute = r.longest_window_cost_ns = 0;
		run_for(&r, &l, 300 * S);
		assert_true(r.worst_minute <= percents[i] / 100 + 0.005);
		assert_true(r.steps_nr > 100);
		l = mlp;
		run_for(&r, &l, 300 * S);
		assert_true(r.worst_minute <= percents[i] / 100 + 0.005);
	}
}

/* The target sleeps and wakes: what was saved in a quiet hour is not spent in one second. */
static void test_idle_earns_nothing(void **state)
{
	struct load l = mlp;
	struct run r;

	begin(&r, 3);
	l.busy = 0;
	run_for(&r, &l, 3600 * S);
	assert_int_equal(r.windows_nr, 0);
	l.busy = 1;
	l.traced = 0;
	run_for(&r, &l, 60 * S);
	l.traced = 5;
	r.worst_minute = 0;
	r.minute_begin_ns = r.at.now_ns;
	r.minute_cost_ns = r.minute_plain_ns = 0;
	run_for(&r, &l, 61 * S);
	assert_true(r.worst_minute <= 0.03 * 1.2);
}

/* A step that takes long is waited for, until it is whole. */
static void test_long_steps(void **state)
{
	struct load l = {.busy = 1, .step_ms = 1700, .traced = 0.3, .rest = 0.0003};
	struct run r;

	begin(&r, 1);
	run_for(&r, &l, 3600 * S);
	assert_true(r.steps_nr >= 10);
	assert_true(r.cost_ns <= 0.0105 * r.plain_ns);
	assert_false(budget__is_hopeless(&r.budget));
}

/* A step that a minute cannot pay for. */
static void test_hopeless_steps(void **state)
{
	struct load l = {.busy = 1, .step_ms = 30000, .traced = 0.6, .rest = 0.0003};
	struct run r;

	begin(&r, 1);
	run_for(&r, &l, 3600 * S);
	assert_true(r.cost_ns <= 0.0105 * r.plain_ns);
	assert_true(r.by_time_nr > 1000);
}

/* As with probes, which have to be placed each time. */
static void test_dear_opening(void **state)
{
	struct load l = {.busy = 1, .traced = 1.5, .rest = 0.0003, .opening_ms = 150};
	struct run r;

	begin(&r, 3);
	run_for(&r, &l, 1200 * S);
	assert_true(r.cost_ns <= 0.031 * r.plain_ns);
	assert_true(r.windows_nr >= 20 && r.windows_nr < 240);
}

static void test_rest_is_judged(void **state)
{
	struct load l = mlp;
	struct run r;

	begin(&r, 1);
	run_for(&r, &l, 30 * S);
	assert_false(budget__rest_is_dear(&r.budget));
	l.rest = 0.008;
	run_for(&r, &l, 60 * S);
	assert_true(budget__rest_is_dear(&r.budget));
}

/* ---- the cost of an op ---- */

/* Rounds of plain steps and traced ones of 100 ops, which cost so much each; every other step is
 * longer by `wobble_ns`. */
static void steps(struct step_cost *s, int rounds, double op_ns, uint64_t wobble_ns)
{
	for (int i = 0; i < rounds; i++) {
		for (int k = 0; k < 100; k++)
			step_cost__steps(s, false, 1, 400000 + (uint64_t)(k & 1) * wobble_ns, 0);
		for (int k = 0; k < 20; k++)
			step_cost__steps(s, true, 1,
					 400000 + (uint64_t)(100 * op_ns) +
						 (uint64_t)(k & 1) * wobble_ns,
					 100);
	}
	step_cost__steps(s, false, 1, 400000, 0);
}

static void test_cost_of_an_op(void **state)
{
	struct step_cost s = {0};
	double ns, error_ns;

	assert_false(step_cost__per_op(&s, &ns, &error_ns));
	steps(&s, 10, 350, 100000);
	assert_true(step_cost__per_op(&s, &ns, &error_ns));
	assert_true(fabs(ns - 350) <= 10);
	assert_true(error_ns < 20);
	steps(&s, 200, 700, 0);
	assert_true(step_cost__per_op(&s, &ns, &error_ns));
	assert_true(fabs(ns - 700) <= 10);
}

/* Neither a step without a plain one beside it nor one in which something else happened counts. */
static void test_cost_needs_both(void **state)
{
	struct step_cost s = {0};
	double ns, error_ns;

	for (int i = 0; i < 1000; i++)
		step_cost__steps(&s, true, 1, 400000, 100);
	assert_false(step_cost__per_op(&s, &ns, &error_ns));
	memset(&s, 0, sizeof(s));
	steps(&s, 5, 350, 0);
	step_cost__steps(&s, true, 1, 4000000000ULL, 100);
	steps(&s, 5, 350, 0);
	assert_true(step_cost__per_op(&s, &ns, &error_ns));
	assert_true(fabs(ns - 350) <= 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_share_is_kept),
		cmocka_unit_test(test_time_that_does_not_count),
		cmocka_unit_test(test_cheap_load_is_traced_all_the_time),
		cmocka_unit_test(test_first_window_is_bounded),
		cmocka_unit_test(test_jump),
		cmocka_unit_test(test_idle_earns_nothing),
		cmocka_unit_test(test_long_steps),
		cmocka_unit_test(test_hopeless_steps),
		cmocka_unit_test(test_dear_opening),
		cmocka_unit_test(test_rest_is_judged),
		cmocka_unit_test(test_cost_of_an_op),
		cmocka_unit_test(test_cost_needs_both),
	};

	return cmocka_run_group_tests_name("capture_budget", tests, NULL, NULL);
}
