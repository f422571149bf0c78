/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Recordings within a budget: what lies in their windows, and what is estimated from them.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "events.h"
#include "outputs.h"

#define T     (1ULL << 32)
#define START 1000000ULL

static int setup(void **state)
{
	*state = events__new();
	events__meta(*state, "overhead_pct", "1");
	events__window(*state, START, 2 * START, START);
	return 0;
}

static void window(struct events *e, uint64_t start_ns, uint64_t end_ns, uint32_t steps_nr,
		   uint64_t all_steps_nr, uint64_t inside_ns)
{
	struct gp_ev_window ev = {
		.head = {.kind = GP_EV_WINDOW,
			 .flags = steps_nr ? GP_WINDOW_STEPS : 0,
			 .time_ns = START + end_ns},
		.start_ns = START + start_ns,
		.all_steps_nr = all_steps_nr,
		.inside_ns = inside_ns,
		.steps_nr = steps_nr,
	};

	events__raw(e, &ev, sizeof(ev));
}

/* Of no length: how many steps there have been. */
static void mark(struct events *e, uint64_t at_ns, uint64_t all_steps_nr)
{
	struct gp_ev_window ev = {
		.head = {.kind = GP_EV_WINDOW, .flags = GP_WINDOW_STEPS, .time_ns = START + at_ns},
		.start_ns = START + at_ns,
		.all_steps_nr = all_steps_nr,
	};

	events__raw(e, &ev, sizeof(ev));
}

static void op(struct events *e, uint64_t start_ns, uint64_t end_ns)
{
	static uint64_t instance;

	events__op(e, (struct event_op){.name = "op",
					.start_ns = START + start_ns,
					.end_ns = START + end_ns,
					.instance = T + ++instance,
					.tid = 7});
}

static void near(double value, double expected)
{
	if (fabs(value - expected) > 1e-6 * fabs(expected))
		fail_msg("%f is not %f", value, expected);
}

static void test_what_lies_in_windows(void **state)
{
	struct events *e = *state;
	const struct timeline *t;

	mark(e, 0, 0);
	op(e, 50, 60);	 /* before the first */
	op(e, 100, 110); /* in it, from its begin */
	op(e, 150, 250); /* ends in the next one, which follows at once */
	op(e, 290, 310); /* ends behind */
	op(e, 400, 410);
	op(e, 590, 600); /* in the last, to its end */
	window(e, 100, 200, 1, 1, 0);
	window(e, 200, 300, 1, 2, 0);
	window(e, 500, 600, 1, 8, 0);
	mark(e, 900, 12);
	t = events__timeline(e);
	assert_int_equal(t->ops.nr, 3);
	assert_int_equal(loss_of(t, "window_cut"), 1);
	assert_int_equal(t->windows.nr, 3);
	assert_int_equal(t->all_steps_nr, 12);
	/* Before, between and behind. */
	assert_int_equal(t->pauses.nr, 3);
	assert_int_equal(t->end_ns - t->start_ns - t->paused_ns, 300);
}

/* Steps with 2, 2, 2 and 6 calls in windows of 1, 1, 1 and 3 steps: no chance. With times of 10,
 * 10, 10 and 60: by hand. */
static void test_by_steps(void **state)
{
	struct events *e = *state;
	const struct estimate *row;
	struct table *table;

	mark(e, 0, 0);
	for (uint64_t i = 0; i < 3; i++) {
		op(e, 100 * i, 100 * i + 5);
		op(e, 100 * i + 10, 100 * i + 15);
		window(e, 100 * i, 100 * i + 50, 1, i + 1, 0);
	}
	for (uint64_t i = 0; i < 6; i++)
		op(e, 300 + 20 * i, 310 + 20 * i);
	window(e, 300, 450, 3, 6, 0);
	mark(e, 999, 60);
	table = table_of(events__timeline(e), (struct table_options){0});
	assert_true(table->has_estimates);
	assert_int_equal(table->windows.nr, 4);
	assert_int_equal(table->windows.steps_nr, 6);
	assert_int_equal(table->windows.all_steps_nr, 60);
	assert_int_equal(table->rows.items[0].calls, 12);
	assert_int_equal(table->rows.items[0].self_cpu_ns, 90);
	row = table->rows.items[0].estimates;
	near(row[ESTIMATE_CALLS].value, 120);
	assert_true(row[ESTIMATE_CALLS].error == 0);
	/* 15 a step; residuals -5, -5, -5 and 15: 300. 60 * sqrt(0.9 * 300 / (4 * 3)) / 1.5 */
	near(row[ESTIMATE_SELF_CPU_NS].value, 900);
	near(row[ESTIMATE_SELF_CPU_NS].error, 60 * sqrt(0.9 * 300 / 12) / 1.5);
	near(table->windows.self_cpu_total_ns.value, 900);
	table__free(table);
}

/* Steps are not known all the time: by time, as long as it would have been. */
static void test_by_time(void **state)
{
	struct events *e = *state;
	const struct estimate *row;
	struct table *table;

	mark(e, 0, 0);
	op(e, 1000, 1010);
	window(e, 1000, 11000, 0, 0, 0);
	op(e, 50000, 50010);
	window(e, 50000, 61000, 3, 0, 1000);
	mark(e, 900000, 0);
	table = table_of(events__timeline(e), (struct table_options){0});
	assert_int_equal(table->windows.all_steps_nr, 0);
	row = table->rows.items[0].estimates;
	/* Two in 20,000 of 999,000 ns. */
	near(row[ESTIMATE_CALLS].value, 99.9);
	near(row[ESTIMATE_CALLS].error + 1, 1);
	table__free(table);
}

static void pause(struct events *e, uint64_t start_ns, uint64_t end_ns, uint8_t flags)
{
	struct gp_ev_pause ev = {
		.head = {.kind = GP_EV_PAUSE, .flags = flags, .time_ns = START + end_ns},
		.start_ns = START + start_ns,
	};

	events__raw(e, &ev, sizeof(ev));
}

/* The same, but for half of the time nobody wanted windows: so the whole is the other half. What
 * overlaps is not believed, and pauses between windows say nothing new. */
static void test_not_wanted_for_a_while(void **state)
{
	struct events *e = *state;
	const struct estimate *row;
	struct table *table;

	mark(e, 0, 0);
	op(e, 1000, 1010);
	window(e, 1000, 11000, 0, 0, 0);
	pause(e, 11000, 50000, 3);
	op(e, 50000, 50010);
	window(e, 50000, 61000, 0, 0, 1000);
	pause(e, 61000, 100000, 3);
	pause(e, 100000, 600000, 3 | GP_PAUSE_ASKED);
	pause(e, 200000, 700000, 3 | GP_PAUSE_ASKED);
	pause(e, 600000, 900000, 2 | GP_PAUSE_ASKED);
	mark(e, 900000, 0);
	table = table_of(events__timeline(e), (struct table_options){0});
	row = table->rows.items[0].estimates;
	/* Two in 20,000 of 499,000 ns. */
	near(row[ESTIMATE_CALLS].value, 49.9);
	near(table->windows.share_of_time, 21000 / 500000.0);
	assert_int_equal(table->windows.inside_ns, 1000);
	table__free(table);
}

/* One window says nothing of how windows differ. */
static void test_error_is_unknown(void **state)
{
	struct table *table;

	mark(*state, 0, 0);
	op(*state, 100, 200);
	window(*state, 0, 1000, 2, 2, 0);
	mark(*state, 9000, 20);
	table = table_of(events__timeline(*state), (struct table_options){0});
	near(table->rows.items[0].estimates[ESTIMATE_CALLS].value, 10);
	assert_true(isnan(table->rows.items[0].estimates[ESTIMATE_CALLS].error));
	table__free(table);
}

/* A few windows by time among those by steps are left out and counted. */
static void test_kinds_are_not_mixed(void **state)
{
	const struct timeline *t;

	mark(*state, 0, 0);
	op(*state, 100, 200);
	op(*state, 5100, 5200);
	op(*state, 6100, 6200);
	window(*state, 0, 1000, 0, 0, 0);
	window(*state, 5000, 6000, 1, 4, 0);
	window(*state, 6000, 7000, 1, 5, 0);
	mark(*state, 9000, 20);
	t = events__timeline(*state);
	assert_int_equal(loss_of(t, "windows_unused"), 1);
	assert_int_equal(t->windows.nr, 2);
	assert_int_equal(t->ops.nr, 2);
}

/* Numbers that cannot be. */
static void test_hostile(void **state)
{
	const struct timeline *t;

	window(*state, 1000, 500, 1, 1, 0);
	window(*state, 1000, 2000, 1, UINT64_MAX, 5000);
	window(*state, 0, UINT64_MAX - START, 1, 1, 0);
	window(*state, 3000, 5000, UINT32_MAX, UINT64_MAX, 2000);
	window(*state, 4000, 4500, 1, 0, 0);
	op(*state, 3100, 3200);
	t = events__timeline(*state);
	assert_int_equal(loss_of(t, "time_invalid"), 3);
	assert_int_equal(t->windows.nr, 1);
	assert_true(t->windows_overlap);
	assert_int_equal(t->ops.nr, 1);
	assert_false(estimate_is_possible(t));
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, events_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_what_lies_in_windows),
		CASE(test_by_steps),
		CASE(test_by_time),
		CASE(test_not_wanted_for_a_while),
		CASE(test_error_is_unknown),
		CASE(test_kinds_are_not_mixed),
		CASE(test_hostile),
	};

	return cmocka_run_group_tests_name("timeline_windows", tests, NULL, NULL);
}
