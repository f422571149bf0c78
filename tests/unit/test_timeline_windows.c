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

static int setup_with(void **state, const char *key)
{
	*state = events__new();
	events__meta(*state, key, "1");
	events__window(*state, START, 2 * START, START);
	return 0;
}

static int setup(void **state)
{
	return setup_with(state, "overhead_pct");
}

static int setup_gpu(void **state)
{
	return setup_with(state, "gpu_windows");
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

/* So many ops from there on. */
static void ops(struct events *e, uint64_t start_ns, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++)
		op(e, start_ns + 10 * i, start_ns + 10 * i + 5);
}

static double estimated_calls(struct events *e)
{
	struct table *table = table_of(events__timeline(e), (struct table_options){0});
	double value = table->rows.items[0].estimates[ESTIMATE_CALLS].value;

	table__free(table);
	return value;
}

/* A window that many ops fill from its begin on. */
static void window_of_ops(struct events *e, uint64_t start_ns, uint64_t end_ns, uint32_t steps_nr,
			  uint64_t all_steps_nr, uint32_t ops_nr)
{
	ops(e, start_ns, ops_nr);
	window(e, start_ns, end_ns, steps_nr, all_steps_nr, 0);
}

/* A window stands for the steps since the one before: ten of 2 calls, ten of 10. */
static void test_weights_by_steps(void **state)
{
	mark(*state, 0, 0);
	window_of_ops(*state, 1000, 2000, 1, 10, 2);
	window_of_ops(*state, 10000, 20000, 5, 20, 50);
	mark(*state, 30000, 20);
	near(estimated_calls(*state), 120);
}

/* Of two windows whose steps are not known in all, of a tenth and half of the time before. */
static double estimated_by_time(struct events *e, uint32_t steps_nr)
{
	mark(e, 0, 0);
	window_of_ops(e, 9000, 10000, steps_nr, 0, 10);
	window_of_ops(e, 20000, 30000, steps_nr, 0, 200);
	mark(e, 30000, 0);
	return estimated_calls(e);
}

/* For the time then: 10,000 ns of 10 calls in 1,000, 20,000 of 20 in 1,000. */
static void test_weights_by_time(void **state)
{
	near(estimated_by_time(*state, 20), (100 + 400) / 30000.0 * START);
}

/* That one step took ten times as long as the other is chance: each was to take 5,500 ns. */
static void test_weights_of_single_steps(void **state)
{
	double first = 1 + 9000 / 5500.0, second = 1 + 10000 / 5500.0;

	near(estimated_by_time(*state, 1),
	     (first * 10 + second * 200) / (first * 1000 + second * 10000) * START);
}

/* How much longer a window took because someone looked is no reason to count it less. */
static void test_weights_of_dear_windows(void **state)
{
	mark(*state, 0, 0);
	ops(*state, 10000, 10);
	window(*state, 10000, 11000, 0, 0, 0);
	ops(*state, 21000, 20);
	window(*state, 21000, 22000, 0, 0, 500);
	mark(*state, 22000, 0);
	near(estimated_calls(*state), (11 * 10 + 21 * 20) / 21500.0 * (START - 500));
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

/* ---- samples: windows of GPU records ---- */

/* A kernel that a call asks for; the same number is neither's of another. */
static void kernel(struct events *e, uint32_t nr, uint64_t asked_ns, uint64_t start_ns,
		   uint64_t end_ns)
{
	events__api(e, (struct event_api){.name = "cudaLaunchKernel_v7000",
					  .correlation_id = nr,
					  .start_ns = START + asked_ns,
					  .end_ns = START + asked_ns + 5,
					  .cbid = 211,
					  .cupti = true,
					  .tid = 7});
	if (end_ns)
		events__gpu(e, (struct event_gpu){.name = "kernel",
						  .correlation_id = nr,
						  .stream = 7,
						  .start_ns = START + start_ns,
						  .end_ns = START + end_ns});
}

/* It counts when it was asked for; ops, and time on CPUs, know no windows. */
static void test_gpu_windows(void **state)
{
	struct events *e = *state;
	const struct timeline *t;
	const struct estimate *row;
	struct table *table;

	op(e, 50, 60);
	kernel(e, 1, 0, 150, 160); /* asked for before */
	kernel(e, 2, 100000, 100100, 100200);
	kernel(e, 3, 199000, 300000, 310000); /* ran after it */
	kernel(e, 4, 250000, 350000, 360000); /* while the records went off */
	kernel(e, 5, 260000, 0, 0);	      /* likewise, its end was not told */
	kernel(e, 6, 500000, 500100, 500200);
	kernel(e, 7, 590000, 0, 0); /* lost */
	window(e, 100000, 200000, 0, 0, 0);
	window(e, 500000, 600000, 0, 0, 0);
	t = events__timeline(e);
	assert_int_equal(t->ops.nr, 1);
	assert_int_equal(t->paused_ns, 0);
	assert_int_equal(t->gpu.work.nr, 3);
	assert_int_equal(loss_of(t, "launch_unmatched"), 1);
	assert_false(t->gpu_unseen);
	/* The one stands for twice itself, the other for four times; that is 600,000 of a million.
	 */
	near(t->gpu_stands_for, 5.0 / 3);
	assert_true(t->gpu_estimated);
	near(timeline__gpu_stands_for(t, &t->gpu.work.items[0]), 2 * 5.0 / 3);
	near(timeline__gpu_stands_for(t, &t->gpu.work.items[2]), 4 * 5.0 / 3);
	near(t->gpu.devices.items[0].whole_nr, 8 * 5.0 / 3);
	near(t->gpu.devices.items[0].whole_busy_ns, 20600 * 5.0 / 3);
	/* Between the first's end and the third's begin, in windows. */
	assert_int_equal(t->gpu.devices.items[0].busy_ns, 10200);
	assert_int_equal(t->gpu.devices.items[0].idle_ns, 200000 - 100200 + 100);
	table = table_of(t, (struct table_options){0});
	row = NULL;
	for (size_t i = 0; i < table->rows.nr; i++)
		if (!strcmp(table->rows.items[i].name, "kernel"))
			row = table->rows.items[i].estimates;
	assert_non_null(row);
	near(row[ESTIMATE_CALLS].value, 8 * 5.0 / 3);
	near(row[ESTIMATE_SELF_CUDA_NS].value, 20600 * 5.0 / 3);
	table__free(table);
}

/* For half of the time nobody wanted to know. */
static void test_gpu_switched_off(void **state)
{
	struct events *e = *state;
	const struct timeline *t;

	kernel(e, 2, 100000, 100100, 100200);
	window(e, 0, 200000, 0, 0, 0);
	pause(e, 500000, 1000000, 2 | GP_PAUSE_ASKED);
	t = events__timeline(e);
	near(t->gpu_stands_for, 2.5);
	assert_int_equal(t->paused_ns, 0);
}

/* No window: nothing is known, which is another thing than that nothing was. */
static void test_gpu_unseen(void **state)
{
	const struct timeline *t;

	kernel(*state, 2, 100000, 100100, 100200);
	window(*state, 1000, 1000, 0, 0, 0);
	t = events__timeline(*state);
	assert_true(t->gpu_unseen);
	assert_int_equal(t->gpu.work.nr, 0);
	assert_true(t->gpu_stands_for == 0);
}

/* All of what is cheap was seen, and a tenth of what is dear: that is in the weights. */
static void test_gpu_windows_of_some_density(void **state)
{
	struct events *e = *state;
	const struct timeline *t;
	const struct estimate *row = NULL;
	struct table *table;

	for (uint32_t i = 0; i < 5; i++)
		window(e, 100000 * i, 100000 * (i + 1), 0, 0, 0);
	for (uint32_t i = 0; i < 5; i++) {
		uint64_t at = 590000 + 100000 * i;

		for (uint32_t k = 0; k < 10 + i; k++)
			kernel(e, 100 * i + k + 1, at + 10 * k, at + 10 * k, at + 10 * k + 5);
		window(e, at, at + 10000, 0, 0, 0);
	}
	t = events__timeline(e);
	near(t->gpu_stands_for, 1);
	table = table_of(t, (struct table_options){0});
	for (size_t i = 0; i < table->rows.nr; i++)
		if (!strcmp(table->rows.items[i].name, "kernel"))
			row = table->rows.items[i].estimates;
	assert_non_null(row);
	near(row[ESTIMATE_CALLS].value, 600);
	/* y - m * 600 / 1000000 is 40 to 80, each of which was not seen to nine tenths. */
	near(row[ESTIMATE_CALLS].error, sqrt(0.9 * (1600 + 2500 + 3600 + 4900 + 6400) * 10 / 9));
	table__free(table);
}

/* Recordings of several captures: what was seen, and no estimate. */
static void test_gpu_windows_overlap(void **state)
{
	struct events *e = *state;
	const struct timeline *t;

	kernel(e, 2, 100000, 100100, 100200);
	window(e, 0, 200000, 0, 0, 0);
	window(e, 50000, 250000, 0, 0, 0);
	window(e, 300000, 250000, 0, 0, 0);
	window(e, 300000, UINT64_MAX - START, 0, 0, 0);
	t = events__timeline(e);
	assert_int_equal(loss_of(t, "time_invalid"), 2);
	assert_int_equal(t->windows.nr, 1);
	assert_int_equal(t->gpu.work.nr, 1);
	assert_true(t->gpu_stands_for == 0);
}

/* Windows of one say nothing of what the other saw: it all stays. */
static void test_gpu_windows_merged(void **state)
{
	struct events *e = *state;
	const struct timeline *t;

	events__meta(e, "merged", "2");
	kernel(e, 2, 100000, 100100, 100200);
	kernel(e, 3, 300000, 300100, 300200);
	window(e, 0, 200000, 0, 0, 0);
	t = events__timeline(e);
	assert_int_equal(t->gpu.work.nr, 2);
	assert_false(t->gpu_unseen);
	assert_true(t->gpu_partial);
	near(timeline__gpu_stands_for(t, &t->gpu.work.items[0]), 1);
}

/* A window that is next to nothing, in a long time. */
static void test_gpu_windows_hostile(void **state)
{
	struct events *e = *state;
	const struct timeline *t;

	events__window(e, START, START + (1ULL << 61), START);
	kernel(e, 2, 100000, 100000, 1ULL << 60);
	window(e, 100000, 100001, 0, 0, 0);
	pause(e, 0, 1ULL << 60, 2);
	pause(e, 0, 1ULL << 60, 2);
	t = events__timeline(e);
	assert_int_equal(timeline__wanted_ns(t), 1ULL << 60);
	near(timeline__gpu_stands_for(t, &t->gpu.work.items[0]), 1ULL << 60);
	assert_true(isfinite(t->gpu.devices.items[0].whole_busy_ns));
}

#define CASE(f)	    cmocka_unit_test_setup_teardown(f, setup, events_teardown)
#define GPU_CASE(f) cmocka_unit_test_setup_teardown(f, setup_gpu, events_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_what_lies_in_windows),
		CASE(test_by_steps),
		CASE(test_by_time),
		CASE(test_weights_by_steps),
		CASE(test_weights_by_time),
		CASE(test_weights_of_single_steps),
		CASE(test_weights_of_dear_windows),
		CASE(test_not_wanted_for_a_while),
		CASE(test_error_is_unknown),
		CASE(test_kinds_are_not_mixed),
		CASE(test_hostile),
		GPU_CASE(test_gpu_windows),
		GPU_CASE(test_gpu_switched_off),
		GPU_CASE(test_gpu_unseen),
		GPU_CASE(test_gpu_windows_of_some_density),
		GPU_CASE(test_gpu_windows_overlap),
		GPU_CASE(test_gpu_windows_merged),
		GPU_CASE(test_gpu_windows_hostile),
	};

	return cmocka_run_group_tests_name("timeline_windows", tests, NULL, NULL);
}
