/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The controller of the samples' rate against loads that are simulated.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "capture/policy/sampling_rate.h"

#define MS     1000000ULL
#define S      1000000000ULL
#define US     1e3
#define HZ     99
#define FLOOR  RATE_FLOOR_NS
#define WITHIN 1.02 /* the rate follows what a sample costs with some delay */

/* What targets do, and what it costs to sample them. */
struct load {
	double cpus;
	double sample_us; /* in the target */
	double event_us;  /* in gpuprof, of each sample */
	double look_us;	  /* in gpuprof, each fourth period, whatever the targets do */
	double rest;	  /* gpuprof's share of a CPU that does not go with the rate */
};

static const struct load busy = {
	.cpus = 1, .sample_us = 90, .event_us = 30, .look_us = 60, .rest = 0.001};

struct run {
	struct sampling_rate rate;
	struct rate_account at;
	double plain_ns, cost_ns, samples_nr;
	uint32_t changes_nr;
};

static void begin(struct run *r, double percent)
{
	memset(r, 0, sizeof(*r));
	r->at = (struct rate_account){.now_ns = 5 * S, .own_ns = 3 * MS};
	sampling_rate__init(&r->rate, percent, HZ, &r->at);
}

static void spend(struct run *r, double inside_ns, double own_ns)
{
	r->at.cpu_ns += (uint64_t)inside_ns;
	r->at.inside_ns += (uint64_t)inside_ns;
	r->at.own_ns += (uint64_t)own_ns;
	r->cost_ns += inside_ns + own_ns;
}

static void run_for(struct run *r, const struct load *l, uint64_t ns)
{
	for (uint64_t end = r->at.now_ns + ns; r->at.now_ns < end;) {
		double dt = 200 * MS, periods = dt / (double)r->rate.period_ns;
		double samples = l->cpus * periods;

		r->at.now_ns += (uint64_t)dt;
		r->at.cpu_ns += (uint64_t)(l->cpus * dt);
		r->plain_ns += l->cpus * dt;
		r->samples_nr += samples;
		spend(r, samples * l->sample_us * US,
		      samples * l->event_us * US + periods / 4 * l->look_us * US + l->rest * dt);
		r->changes_nr += sampling_rate__poll(&r->rate, &r->at);
	}
}

/* What it costs in such a time, by the targets' CPU time. */
static double cost_of(struct run *r, const struct load *l, uint64_t ns)
{
	r->plain_ns = r->cost_ns = 0;
	run_for(r, l, ns);
	return r->cost_ns / r->plain_ns;
}

static void test_keeps_its_budget(void **state)
{
	static const double percents[] = {0.3, 1, 3, 10};
	struct run r;

	(void)state;
	for (int i = 0; i < 4; i++) {
		begin(&r, percents[i]);
		run_for(&r, &busy, 20 * S);
		assert_true(cost_of(&r, &busy, 60 * S) <= WITHIN * percents[i] / 100);
		/* And makes use of it, or needs no more. */
		assert_true(cost_of(&r, &busy, 60 * S) >= 0.8 * percents[i] / 100 ||
			    r.rate.period_ns == r.rate.fastest_ns);
		assert_int_equal(r.rate.range.over_ns, 0);
	}
	assert_int_equal(r.rate.period_ns, S / HZ);
}

/* Before anything is measured, and in the first minute as a whole. */
static void test_begins_safely(void **state)
{
	struct load over_budget = busy;
	struct run r;

	(void)state;
	begin(&r, 1);
	assert_true(r.rate.period_ns >= 20 * MS);
	assert_true(cost_of(&r, &busy, 60 * S) <= WITHIN * 0.01);
	over_budget.sample_us *= 5;
	begin(&r, 1);
	assert_true(cost_of(&r, &over_budget, 60 * S) <= WITHIN * 0.01);
}

static void test_load_jumps(void **state)
{
	struct load more = busy;
	struct run r;

	(void)state;
	more.cpus = 10;
	begin(&r, 1);
	run_for(&r, &busy, 30 * S);
	assert_true(cost_of(&r, &more, 10 * S) <= WITHIN * 0.01);
	assert_true(cost_of(&r, &busy, 30 * S) <= 1.05 * 0.01);
}

/* At once, not when the mean has come to know it. */
static void test_samples_become_dear(void **state)
{
	struct load over_budget = busy;
	struct run r;
	uint64_t before_ns;

	(void)state;
	begin(&r, 1);
	run_for(&r, &busy, 30 * S);
	before_ns = r.rate.period_ns;
	over_budget.sample_us *= 5;
	run_for(&r, &over_budget, 1200 * MS);
	assert_true(r.rate.period_ns > 2 * before_ns);
	assert_true(cost_of(&r, &over_budget, 30 * S) <= WITHIN * 0.01);
}

static void test_idle(void **state)
{
	struct load idle = busy;
	struct run r;
	uint64_t before_ns;

	(void)state;
	idle.cpus = 0;
	begin(&r, 1);
	run_for(&r, &busy, 30 * S);
	before_ns = r.rate.period_ns;
	run_for(&r, &idle, 3 * S);
	assert_int_equal(r.rate.period_ns, FLOOR);
	/* Nobody works: it is no news that this costs more than nothing. */
	run_for(&r, &idle, 60 * S);
	assert_int_equal(r.rate.range.over_ns, 0);
	/* By steps, not at once. */
	run_for(&r, &busy, 1200 * MS);
	assert_true(r.rate.period_ns >= FLOOR / 2);
	run_for(&r, &busy, 20 * S);
	assert_true((double)r.rate.period_ns <= 1.1 * (double)before_ns);
}

/* A pause of a second between two of work is none. */
static void test_pauses(void **state)
{
	struct load idle = busy;
	struct run r;

	(void)state;
	idle.cpus = 0;
	begin(&r, 1);
	for (int i = 0; i < 30; i++) {
		run_for(&r, &busy, S);
		run_for(&r, &idle, S);
	}
	r.plain_ns = r.cost_ns = r.samples_nr = 0;
	for (int i = 0; i < 30; i++) {
		run_for(&r, &busy, S);
		run_for(&r, &idle, S);
	}
	assert_true(r.cost_ns <= WITHIN * 0.01 * r.plain_ns);
	assert_true(r.samples_nr > 15 * 30);
}

static void test_floor(void **state)
{
	struct load over_budget = busy;
	struct run r;

	(void)state;
	over_budget.rest = 0.02;
	begin(&r, 1);
	run_for(&r, &over_budget, 60 * S);
	assert_int_equal(r.rate.period_ns, FLOOR);
	assert_true(r.rate.over_ns > 10 * S);
	assert_true(sampling_rate__range(&r.rate, r.at.now_ns).over_ns >= r.rate.over_ns);
	run_for(&r, &busy, 60 * S);
	assert_int_equal(r.rate.over_ns, 0);
	assert_true(r.rate.period_ns < FLOOR / 10);
}

/* What is made once, a table say, is not spread over the samples. */
static void test_once(void **state)
{
	struct run r;
	uint64_t before_ns;

	(void)state;
	begin(&r, 1);
	run_for(&r, &busy, 30 * S);
	before_ns = r.rate.period_ns;
	spend(&r, 0, 500 * MS);
	run_for(&r, &busy, 3 * S);
	assert_true((double)r.rate.period_ns < 1.2 * (double)before_ns);
	begin(&r, 1);
	spend(&r, 0, 500 * MS);
	run_for(&r, &busy, 10 * S);
	assert_true((double)r.rate.period_ns < 1.2 * (double)before_ns);
}

/* Of time in which nothing was sampled nothing is learnt. */
static void test_skip(void **state)
{
	struct run r;
	uint64_t before_ns;
	double cpus;

	(void)state;
	begin(&r, 1);
	run_for(&r, &busy, 30 * S);
	before_ns = r.rate.period_ns;
	cpus = r.rate.cpus;
	(void)sampling_rate__range(&r.rate, r.at.now_ns);
	/* Until then it was. */
	r.at.now_ns += S / 2;
	sampling_rate__skip(&r.rate, &r.at);
	assert_int_equal(sampling_rate__range(&r.rate, r.at.now_ns).time_ns, S / 2);
	r.at.now_ns += 600 * S;
	r.at.cpu_ns += 6000 * S;
	sampling_rate__skip(&r.rate, &r.at);
	r.at.now_ns += S;
	assert_false(sampling_rate__poll(&r.rate, &r.at));
	assert_true(r.rate.period_ns == before_ns && r.rate.cpus == cpus);
	assert_int_equal(sampling_rate__range(&r.rate, r.at.now_ns).time_ns, 0);
	run_for(&r, &busy, 2 * S);
	assert_true((double)r.rate.period_ns < 1.1 * (double)before_ns);
}

static void test_fixed(void **state)
{
	struct load over_budget = busy;
	struct rate_range range;
	struct run r;

	(void)state;
	over_budget.sample_us = 5000;
	begin(&r, 0);
	run_for(&r, &over_budget, 60 * S);
	assert_int_equal(r.changes_nr, 0);
	range = sampling_rate__range(&r.rate, r.at.now_ns);
	assert_int_equal(range.least_ns, S / HZ);
	assert_int_equal(range.most_ns, S / HZ);
	assert_int_equal(range.time_ns, 60 * S);
	assert_true(fabs(range.due_nr - 60 * HZ) < 0.01);
}

/* What is told of the rates is what was in force. */
static void test_range(void **state)
{
	struct load over_budget = busy;
	struct rate_range range;
	struct run r;
	uint64_t slow_ns, fast_ns;

	(void)state;
	over_budget.sample_us *= 5;
	begin(&r, 1);
	run_for(&r, &over_budget, 30 * S);
	slow_ns = r.rate.period_ns;
	(void)sampling_rate__range(&r.rate, r.at.now_ns);
	r.samples_nr = 0;
	run_for(&r, &busy, 30 * S);
	fast_ns = r.rate.period_ns;
	range = sampling_rate__range(&r.rate, r.at.now_ns);
	assert_true(range.most_ns >= slow_ns && range.least_ns <= fast_ns && fast_ns < slow_ns);
	assert_int_equal(range.time_ns, 30 * S);
	assert_true(fabs(range.due_nr - r.samples_nr) < 0.01 * r.samples_nr);
}

/* Clocks that stand still, go back or leap. */
static void test_hostile(void **state)
{
	struct rate_account a = {.now_ns = 5 * S};
	struct sampling_rate r;

	(void)state;
	sampling_rate__init(&r, 1, HZ, &a);
	for (uint64_t i = 0; i < 200; i++) {
		a.now_ns += i % 3 ? 2 * S : 0;
		a.cpu_ns = i % 5 ? UINT64_MAX - i : i;
		a.inside_ns = i % 7 ? UINT64_MAX / 2 + i : 0;
		a.own_ns = i % 2 ? UINT64_MAX : 0;
		(void)sampling_rate__poll(&r, &a);
		assert_true(r.period_ns >= r.fastest_ns && r.period_ns <= FLOOR);
		assert_true(isfinite(r.cpus) && isfinite(r.sample_ns) && isfinite(r.owed_ns));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_keeps_its_budget),
		cmocka_unit_test(test_begins_safely),
		cmocka_unit_test(test_load_jumps),
		cmocka_unit_test(test_samples_become_dear),
		cmocka_unit_test(test_idle),
		cmocka_unit_test(test_pauses),
		cmocka_unit_test(test_floor),
		cmocka_unit_test(test_once),
		cmocka_unit_test(test_skip),
		cmocka_unit_test(test_fixed),
		cmocka_unit_test(test_range),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
