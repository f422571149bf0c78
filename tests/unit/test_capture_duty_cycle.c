/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The pace of windows against processes that are made up: what they cost, and whether each kind of
 * time is seen as often as it stands for.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "capture/policy/duty_cycle.h"

#define SECOND 1000000000ULL
#define STEP   5000000ULL

/* What records cost while they are on, a nanosecond each; and of CPUs used. */
struct load {
	double burn, cpus;
};

typedef struct load (*load_fn)(uint64_t ns);

struct outcome {
	double cost_ns, seen_ns;
	double heavy_ns; /* estimated: how long the load was over the middle of its range */
	unsigned int windows_nr;
};

static struct outcome simulate(load_fn load, double percent, uint64_t seconds)
{
	struct budget_account a = {.now_ns = SECOND};
	struct outcome o = {0};
	struct duty_cycle p;
	double asked_ns = 0, heavy_ns = 0, cpu_ns = 0;
	uint64_t begin = SECOND, opened = SECOND, before_end = SECOND;
	bool open = true;

	duty_cycle__init(&p, percent, &a);
	for (uint64_t now = begin; now < begin + seconds * SECOND; now += STEP) {
		struct load l = load(now - begin);
		double cost = open ? l.burn * (double)STEP : 0;

		o.cost_ns += cost;
		cpu_ns += l.cpus * (double)STEP + cost;
		heavy_ns += open && l.burn > 0.01 ? (double)STEP : 0;
		o.seen_ns += open ? (double)STEP : 0;
		a = (struct budget_account){.now_ns = now + STEP,
					    .cpu_ns = (uint64_t)cpu_ns,
					    .inside_ns = (uint64_t)o.cost_ns,
					    .cost_ns = (uint64_t)o.cost_ns};
		duty_cycle__account(&p, &a);
		if (!open && duty_cycle__may_open(&p, a.now_ns)) {
			open = true;
			opened = a.now_ns;
			asked_ns = o.cost_ns;
		} else if (open && a.now_ns - opened >= p.length_ns) {
			o.heavy_ns += heavy_ns / (double)(a.now_ns - opened) *
				      (double)(a.now_ns - before_end);
			o.windows_nr++;
			before_end = a.now_ns;
			heavy_ns = 0;
			open = duty_cycle__had(&p, a.now_ns, a.now_ns - opened,
					       o.cost_ns - asked_ns);
			opened = a.now_ns;
			asked_ns = o.cost_ns;
		}
	}
	return o;
}

static void between(double value, double least, double most)
{
	if (!(value >= least && value <= most))
		fail_msg("%g is not within %g and %g", value, least, most);
}

static struct load cheap(uint64_t ns)
{
	return (struct load){0.0005, 1};
}

static struct load over_budget(uint64_t ns)
{
	return (struct load){0.048, 1};
}

static struct load by_turns(uint64_t ns)
{
	return (struct load){ns / (10 * SECOND) % 2 ? 0.048 : 0.0001, 1};
}

/* One second in seven, at any time. */
static struct load bursts(uint64_t ns)
{
	return (struct load){ns / SECOND * 2654435761U >> 8 & 7 ? 0.0001 : 0.048, 1};
}

static struct load jumps(uint64_t ns)
{
	return (struct load){ns > 300 * SECOND ? 0.05 : 0.0049, 1};
}

static struct load idles(uint64_t ns)
{
	return (struct load){0.0005, 0.02};
}

static void test_all_the_time(void **state)
{
	struct outcome o = simulate(cheap, 0.5, 600);

	between(o.seen_ns / 600e9, 1, 1);
	between(o.windows_nr, 580, 620);
}

static void test_within_the_budget(void **state)
{
	struct outcome o = simulate(over_budget, 0.5, 600);

	between(o.cost_ns / 600e9, 0.004, 0.0053);
	between(o.seen_ns / 600e9, 0.08, 0.11);
	between(o.windows_nr, 200, 350);
}

/* What is dear is seen as often as what is cheap, or stands for more. */
static void test_by_turns(void **state)
{
	struct outcome o = simulate(by_turns, 0.5, 1200);

	between(o.cost_ns / 1200e9, 0, 0.0053);
	between(o.heavy_ns / 600e9, 0.9, 1.1);
}

static void test_bursts(void **state)
{
	struct outcome o = simulate(bursts, 0.5, 3600);
	double heavy_s = 0;

	for (uint64_t s = 0; s < 3600; s++)
		heavy_s += bursts(s * SECOND).burn > 0.01;
	between(o.cost_ns / 3600e9, 0, 0.0053);
	between(o.heavy_ns / 1e9 / heavy_s, 0.85, 1.15);
}

static void test_jumps(void **state)
{
	struct outcome o = simulate(jumps, 0.5, 600);

	between(o.cost_ns / 600e9, 0.004, 0.0053);
	between(o.heavy_ns / 300e9, 0.9, 1.1);
}

static void test_nothing_to_spend(void **state)
{
	struct outcome o = simulate(idles, 0.5, 600);

	between(o.cost_ns / 600e9, 0.00002, 0.00013);
	assert_true(o.windows_nr > 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_the_time), cmocka_unit_test(test_within_the_budget),
		cmocka_unit_test(test_by_turns),     cmocka_unit_test(test_bursts),
		cmocka_unit_test(test_jumps),	     cmocka_unit_test(test_nothing_to_spend),
	};

	return cmocka_run_group_tests_name("capture_pace", tests, NULL, NULL);
}
