/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Ranks beside each other: which calls are one collective, who came last, what ran meanwhile, and
 * what the collectives tell of clocks that are not the same.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "events.h"
#include "timeline/analysis/ranks.h"

#define RANKS  3
#define FIRST  1000000
#define PERIOD 1000
#define SUMS   40

static uint64_t instance_nr;
static struct ranks found;

static int setup(void **state)
{
	struct events *e = events__new();

	for (uint32_t i = 0; i < RANKS; i++)
		events__rank(e, i, 100 + (int32_t)i, "rank", (int32_t)i);
	instance_nr = 0;
	found = (struct ranks){.one_clock = false};
	*state = e;
	return 0;
}

static int teardown(void **state)
{
	ranks__done(&found);
	events__free(*state);
	return 0;
}

static void op(struct events *e, uint16_t rank, const char *name, uint32_t scope, uint64_t start_ns,
	       uint64_t end_ns)
{
	events__op(e, (struct event_op){.name = name,
					.start_ns = start_ns,
					.end_ns = end_ns,
					.instance = (uint64_t)(rank + 1) << 32 | ++instance_nr,
					.process = rank,
					.tid = (scope == GP_SCOPE_USER ? 200U : 100U) + rank,
					.scope = scope});
}

static void call(struct events *e, uint16_t rank, const char *name, uint64_t start_ns,
		 uint64_t end_ns)
{
	op(e, rank, name, GP_SCOPE_USER, start_ns, end_ns);
}

/* Sum n: rank r comes after 10 r ns, in every fourth one rank 1 after 300 ns; all are done at 500,
 * but for some ns more with the rank. */
static void sum(struct events *e, uint16_t rank, unsigned int n, int64_t clock_ns)
{
	uint64_t at = FIRST + n * PERIOD + (uint64_t)clock_ns;
	uint64_t after = n % 4 == 3 && rank == 1 ? 300 : 10ULL * rank;

	call(e, rank, "gloo:all_reduce", at + after, at + 500 + rank);
}

static const struct rank_row *row(int32_t rank)
{
	for (size_t i = 0; i < found.rows.nr; i++)
		if (found.rows.items[i].rank == rank)
			return &found.rows.items[i];
	fail_msg("no rank %d", rank);
	return NULL;
}

static const struct timeline *find(struct events *e)
{
	const struct timeline *t = events__timeline(e);

	assert_int_equal(ranks__find(t, &found), 0);
	return t;
}

static void test_last(void **state)
{
	for (uint16_t r = 0; r < RANKS; r++)
		for (unsigned int n = 0; n < SUMS; n++)
			sum(*state, r, n, 0);
	find(*state);
	assert_int_equal(found.rows.nr, RANKS);
	assert_int_equal(found.collectives.nr, SUMS);
	for (size_t i = 0; i < SUMS; i++) {
		const struct rank_collective *one = &found.collectives.items[i];
		uint32_t last = found.calls.items[one->last].process;

		assert_int_equal(one->nr, RANKS);
		assert_int_equal(last, i % 4 == 3 ? 1 : 2);
		assert_int_equal(one->behind_ns, i % 4 == 3 ? 280 : 10);
		assert_int_equal(one->spread_ns, i % 4 == 3 ? 300 : 20);
	}
	assert_int_equal(row(1)->last_nr, SUMS / 4);
	assert_int_equal(row(1)->behind_ns, SUMS / 4 * 280);
	assert_int_equal(row(2)->last_nr, SUMS * 3 / 4);
	assert_int_equal(row(0)->waited_ns, SUMS / 4 * 300 + SUMS * 3 / 4 * 20);
	assert_int_equal(row(0)->communication_ns, SUMS * 500);
	assert_int_equal(row(0)->unmatched_nr + row(1)->unmatched_nr + row(2)->unmatched_nr, 0);
}

/* Recorded from other calls on, with one lost in the middle and a kind of its own. */
static void test_sequences_that_differ(void **state)
{
	for (unsigned int n = 0; n < SUMS; n++) {
		sum(*state, 0, n, 0);
		if (n >= 3)
			sum(*state, 1, n, 0);
		if (n < SUMS - 2)
			sum(*state, 2, n, 0);
	}
	call(*state, 1, "gloo:barrier", FIRST + SUMS * PERIOD, FIRST + SUMS * PERIOD + 10);
	find(*state);
	assert_int_equal(found.collectives.nr, SUMS - 5);
	assert_int_equal(row(0)->unmatched_nr, 5);
	assert_int_equal(row(1)->unmatched_nr, 3);
	assert_int_equal(row(2)->unmatched_nr, 3);
	/* The first that all have is number 3, in which rank 1 is late. */
	assert_int_equal(found.collectives.items[0].behind_ns, 280);
}

/* What follows a lost call is not taken for its neighbour. */
static void test_lost_call(void **state)
{
	for (unsigned int n = 0; n < SUMS; n++)
		for (uint16_t r = 0; r < RANKS; r++)
			if (r != 2 || n != 30)
				sum(*state, r, n, 0);
	find(*state);
	assert_int_equal(found.collectives.nr, SUMS - 1);
	assert_int_equal(row(0)->unmatched_nr, 1);
	assert_int_equal(row(1)->unmatched_nr, 1);
	assert_int_equal(row(2)->unmatched_nr, 0);
	assert_int_equal(row(1)->last_nr, SUMS / 4);
}

/* Nobody waits for all in a broadcast; send and recv are no collectives. */
static void test_kinds(void **state)
{
	for (uint16_t r = 0; r < 2; r++) {
		sum(*state, r, 0, 0);
		call(*state, r, "gloo:broadcast", FIRST + 600 + r * 100ULL,
		     FIRST + 650 + r * 100ULL);
		call(*state, r, r ? "gloo:recv" : "gloo:send", FIRST + 800, FIRST + 810);
		sum(*state, r, 1, 0);
	}
	op(*state, 2, "c10d::allreduce_", GP_SCOPE_FUNCTION, FIRST, FIRST + 10);
	find(*state);
	assert_int_equal(found.collectives.nr, 3);
	assert_int_equal(found.collectives.items[1].last, TL_NONE);
	assert_int_equal(row(0)->peer_nr, 1);
	assert_int_equal(row(0)->calls_nr, 3);
	assert_int_equal(row(2)->untimed_nr, 1);
}

static void test_overlap(void **state)
{
	/* 500 ns of communication in rank 0, 100 of them with operators. */
	sum(*state, 0, 0, 0);
	op(*state, 0, "aten::mm", GP_SCOPE_FUNCTION, FIRST - 100, FIRST + 60);
	op(*state, 0, "aten::relu", GP_SCOPE_FUNCTION, FIRST + 100, FIRST + 140);
	op(*state, 0, "c10d::allreduce_", GP_SCOPE_FUNCTION, FIRST + 200, FIRST + 300);
	op(*state, 0, "Optimizer.step#SGD.step", GP_SCOPE_USER, FIRST + 300, FIRST + 400);
	sum(*state, 1, 0, 0);
	find(*state);
	assert_int_equal(row(0)->communication_ns, 500);
	assert_int_equal(row(0)->computed_ns, 100);
	assert_int_equal(row(1)->computed_ns, 0);
	assert_false(row(0)->by_gpu);
}

/* Kernels of NCCL count, and beside them other kernels, not operators. */
static void test_kernels(void **state)
{
	for (uint16_t r = 0; r < 2; r++) {
		op(*state, r, "aten::mm", GP_SCOPE_FUNCTION, FIRST, FIRST + 5000);
		for (unsigned int n = 0; n < 4; n++) {
			uint64_t at = FIRST + n * PERIOD;

			events__gpu(*state,
				    (struct event_gpu){
					    .name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
					    .start_ns = at + 100ULL * r,
					    .end_ns = at + 500 + r,
					    .stream = 20,
					    .process = r});
			events__gpu(*state, (struct event_gpu){.name = "gemm",
							       .start_ns = at + 450,
							       .end_ns = at + 900,
							       .stream = 7,
							       .process = r});
		}
	}
	find(*state);
	assert_true(row(0)->by_gpu);
	assert_int_equal(row(0)->communication_ns, 4 * 500);
	assert_int_equal(row(0)->computed_ns, 4 * 50);
	assert_int_equal(found.collectives.nr, 4);
	assert_int_equal(row(1)->last_nr, 4);
	assert_int_equal(row(1)->behind_ns, 4 * 100);
}

/* DataLoader workers have their rank's number. */
static void test_workers_are_no_ranks(void **state)
{
	events__rank(*state, 7, 200, "worker", 0);
	op(*state, 7, "aten::stack", GP_SCOPE_FUNCTION, FIRST, FIRST + 10);
	for (uint16_t r = 0; r < RANKS; r++)
		sum(*state, r, 0, 0);
	find(*state);
	assert_int_equal(found.rows.nr, RANKS);
	assert_int_equal(row(0)->calls_nr, 1);
}

static void test_clocks(void **state)
{
	const bool a[] = {true, true, false}, b[] = {false, false, true};
	const int64_t ahead = 217;
	const struct timeline *t;
	struct rank_clock clock;

	events__meta(*state, "clocks", "time of day");
	for (uint16_t r = 0; r < RANKS; r++)
		for (unsigned int n = 0; n < SUMS; n++)
			sum(*state, r, n, r == 2 ? ahead : 0);
	t = find(*state);
	assert_false(found.one_clock);
	assert_int_equal(found.collectives.nr, 0);
	assert_int_equal(ranks_clock(t, a, b, 100000, &clock), 0);
	assert_true(clock.shift_ns + ahead <= (int64_t)clock.error_ns &&
		    clock.shift_ns + ahead >= -(int64_t)clock.error_ns);
	/* Rank 1 is as late as 300 of 500 ns: no more than the other 200 are uncertain one way. */
	assert_in_range(clock.error_ns, 1, 500);
	/* The same all over again fits a period further. */
	assert_in_range(clock.next_ns, 1, 4 * PERIOD);
	assert_int_equal(ranks_clock(t, b, b, 100000, &clock), -ENOENT);
}

static void test_clocks_that_agree_roughly(void **state)
{
	events__meta(*state, "clocks", "collectives");
	events__meta(*state, "clock_error_ns", "50");
	for (uint16_t r = 0; r < RANKS; r++)
		for (unsigned int n = 0; n < SUMS; n++)
			sum(*state, r, n, 0);
	find(*state);
	assert_int_equal(found.collectives.nr, SUMS);
	assert_int_equal(found.undecided_nr, SUMS * 3 / 4);
	assert_int_equal(row(1)->last_nr, SUMS / 4);
	assert_int_equal(row(2)->last_nr, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_last, setup, teardown),
		cmocka_unit_test_setup_teardown(test_sequences_that_differ, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lost_call, setup, teardown),
		cmocka_unit_test_setup_teardown(test_kinds, setup, teardown),
		cmocka_unit_test_setup_teardown(test_overlap, setup, teardown),
		cmocka_unit_test_setup_teardown(test_kernels, setup, teardown),
		cmocka_unit_test_setup_teardown(test_workers_are_no_ranks, setup, teardown),
		cmocka_unit_test_setup_teardown(test_clocks, setup, teardown),
		cmocka_unit_test_setup_teardown(test_clocks_that_agree_roughly, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
