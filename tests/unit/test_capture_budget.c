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

#include "capture/policy/budget.h"
#include "capture/policy/step_cost.h"

#define MS 1000000ULL
#define S  1000000000ULL

/* What a target does, and what it costs to look. */
struct load {
	double busy;	/* CPUs in use */
	double step_ms; /* 0: no steps can be seen */
	double traced;	/* cost in a window, of the CPU time */
	double rest;	/* and outside of one */
	double opening_ms, closing_ms;
};

struct run {
	struct budget budget;
	struct budget_account at;
	double step_ns; /* gone of the step at hand */
	double plain_ns, cost_ns;
	uint64_t minute_begin_ns, opened_ns;
	double minute_plain_ns, minute_cost_ns, worst_minute;
	uint32_t windows_nr, by_time_nr, steps_nr, cut_short_nr, window_steps_nr;
	double closing_ns, seen_ns;
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

static double done(const struct run *r)
{
	return r->by_time ? (double)(r->at.now_ns - r->opened_ns) : r->window_steps_nr;
}

static void close_window(struct run *r)
{
	r->at.now_ns += r->closing_ns > 0;
	spend(r, r->closing_ns);
	budget__account(&r->budget, &r->at);
	budget__closed(&r->budget, r->by_time, done(r), r->within_ns);
	r->open = r->in_step = false;
	r->windows_nr++;
	r->by_time_nr += r->by_time;
	r->steps_nr += r->window_steps_nr;
	r->cut_short_nr += !r->window_steps_nr;
	r->longest_window_cost_ns = fmax(r->longest_window_cost_ns, r->window_cost_ns);
}

static void end_or_cut(struct run *r)
{
	if (!budget__is_over(&r->budget, done(r)))
		return;
	if (!budget__may_go_on(&r->budget)) {
		close_window(r);
		return;
	}
	budget__cut(&r->budget, r->by_time, done(r), r->within_ns);
	r->steps_nr += r->window_steps_nr;
	r->window_steps_nr = 0;
	r->within_ns = 0;
	r->opened_ns = r->at.now_ns;
}

static void open_window(struct run *r, const struct load *l)
{
	r->by_time = !l->step_ms || budget__is_hopeless(&r->budget);
	budget__open(&r->budget, r->by_time);
	r->open = true;
	r->opened_ns = r->at.now_ns;
	r->closing_ns = l->closing_ms * MS;
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
	if (r->window_steps_nr)
		end_or_cut(r);
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
	r->seen_ns += r->open ? plain : 0;
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
	else if (r->open && r->by_time)
		end_or_cut(r);
	else if (r->open && budget__is_over(&r->budget, -1))
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
	assert_true(r.steps_nr + r.window_steps_nr > 100000);
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

	for (l.closing_ms = 0; l.closing_ms <= 20; l.closing_ms += 20) {
		begin(&r, 3);
		run_for(&r, &l, 1200 * S);
		assert_true(r.cost_ns <= 0.031 * r.plain_ns);
		assert_true(r.windows_nr >= 20 && r.windows_nr < 240);
		/* Half of what is spent goes into what is seen. */
		assert_true(r.seen_ns >= 0.4 * 0.03 * r.plain_ns / l.traced);
	}
}

static void test_rest_is_judged(void **state)
{
	struct load l = mlp;
	struct run r;

	begin(&r, 1);
	run_for(&r, &l, 30 * S);
	assert_false(budget__mute_over_budget(&r.budget));
	l.rest = 0.008;
	run_for(&r, &l, 60 * S);
	assert_true(budget__mute_over_budget(&r.budget));
}

/* ---- what windows say of the whole ---- */

/* A step: how long it takes unwatched, and its operators. */
struct work {
	double ms, ops;
};

typedef struct work (*work_fn)(uint64_t nr, uint64_t now_ns);

#define OP_NS	 500
#define OPENS_NS 500000

struct seen {
	struct run run;
	uint64_t steps_nr, reported;	 /* told: steps of which windows have spoken */
	double ops, truth_ops;		 /* operators in the window at hand, and of all */
	double known_ops, estimated_ops; /* of steps told: in truth, and as windows say */
};

/* The window stands for all steps since the one before. */
static void emit(struct seen *s)
{
	struct run *r = &s->run;

	if (r->window_steps_nr) {
		s->estimated_ops +=
			s->ops / r->window_steps_nr * (double)(s->steps_nr - s->reported);
		s->known_ops = s->truth_ops;
		s->reported = s->steps_nr;
	}
	s->ops = 0;
}

static void emit_step(struct seen *s, double ops)
{
	struct run *r = &s->run;

	s->steps_nr++;
	s->truth_ops += ops;
	if (!r->open)
		return;
	r->window_steps_nr++;
	s->ops += ops;
	if (!budget__is_over(&r->budget, r->window_steps_nr))
		return;
	emit(s);
	end_or_cut(r);
}

static void do_step(struct seen *s, const struct work *w)
{
	struct run *r = &s->run;

	for (double gone_ms = 0; gone_ms < w->ms; gone_ms += 2) {
		double part_ms = fmin(2, w->ms - gone_ms);
		double cost_ns = r->open ? w->ops * OP_NS * part_ms / w->ms : 0;

		r->at.now_ns += (uint64_t)(part_ms * MS + cost_ns);
		r->at.cpu_ns += (uint64_t)(part_ms * MS);
		r->plain_ns += part_ms * MS;
		spend(r, cost_ns);
		r->within_ns += cost_ns;
		budget__account(&r->budget, &r->at);
		if (r->open && budget__is_over(&r->budget, -1)) {
			emit(s);
			close_window(r);
		}
	}
	emit_step(s, w->ops);
	if (r->open || !budget__may_open(&r->budget))
		return;
	budget__open(&r->budget, false);
	r->open = true;
	r->window_steps_nr = 0;
	r->window_cost_ns = r->within_ns = 0;
	spend(r, OPENS_NS);
}

static struct seen watch(work_fn work, double percent, uint64_t seconds)
{
	struct seen s = {0};

	begin(&s.run, percent);
	while (s.run.at.now_ns < (5 + seconds) * S) {
		struct work w = work(s.steps_nr, s.run.at.now_ns - 5 * S);

		do_step(&s, &w);
	}
	return s;
}

/* Ten seconds of steps of 300 operators, ten of steps of 3,000, each as long. */
static struct work by_turns(uint64_t nr, uint64_t now_ns)
{
	return (struct work){1, now_ns / (10 * S) % 2 ? 3000 : 300};
}

/* Five minutes each, as long as the work is the same. */
static struct work epochs(uint64_t nr, uint64_t now_ns)
{
	bool over_budget = now_ns / (300 * S) % 2;

	return (struct work){over_budget ? 5 : 1, over_budget ? 3000 : 300};
}

static uint64_t hash(uint64_t nr)
{
	nr = (nr ^ nr >> 31) * 0x7fb5d329728ea185ULL;
	return (nr ^ nr >> 27) * 0x81dadef4bc2dd44dULL >> 33;
}

/* So many that a window has one or two. */
static struct work large_or_small(uint64_t nr, uint64_t now_ns)
{
	return (struct work){20, hash(nr) & 1 ? 40000 : 4000};
}

/* One in ten has twenty times as many. */
static struct work rarely_large(uint64_t nr, uint64_t now_ns)
{
	return (struct work){4, hash(nr) % 10 ? 500 : 10000};
}

static void test_windows_stand_for_the_whole(void **state)
{
	static const work_fn works[] = {by_turns, epochs, large_or_small, rarely_large};
	static const double percents[] = {1, 3, 10};

	for (size_t i = 0; i < 4; i++) {
		for (size_t k = 0; k < 3; k++) {
			struct seen s = watch(works[i], percents[k], 3600);
			double share = s.estimated_ops / s.known_ops;
			double cost = 100 * s.run.cost_ns / s.run.plain_ns;

			if (fabs(share - 1) > 0.04 || cost > 1.02 * percents[k])
				fail_msg("work %zu, %g percent: %.3f of the operators, cost %.3f",
					 i, percents[k], share, cost);
		}
	}
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
		cmocka_unit_test(test_windows_stand_for_the_whole),
		cmocka_unit_test(test_cost_of_an_op),
		cmocka_unit_test(test_cost_needs_both),
	};

	return cmocka_run_group_tests_name("capture_budget", tests, NULL, NULL);
}
