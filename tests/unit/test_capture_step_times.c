/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * CPU time of steps from readings that are not taken at each of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "capture/policy/step_times.h"

#define TID 7

static struct step_times s;

static int begin(void **state)
{
	memset(&s, 0, sizeof(s));
	return 0;
}

static struct gp_ev_op op_of(uint32_t tid, uint64_t end_ns)
{
	return (struct gp_ev_op){.head = {.kind = GP_EV_OP, .tid = tid, .time_ns = end_ns}};
}

static void ops(uint32_t tid, int nr)
{
	struct gp_ev_op op = op_of(tid, 1);

	for (int i = 0; i < nr; i++)
		step_times__op(&s, &op);
}

static void reported(uint32_t tid, uint64_t time_ns, uint64_t cpu_ns)
{
	struct gp_ev_cpu_time ev = {.head = {.tid = tid, .time_ns = time_ns}, .cpu_ns = cpu_ns};

	step_times__recorded(&s, &ev);
}

/* The step ends a little before the annotation that says so. */
static bool ended(uint32_t tid, uint64_t annotation_ns, struct timed_steps *ret_steps)
{
	struct gp_ev_op op = op_of(tid, annotation_ns);

	return step_times__end(&s, &op, annotation_ns - 1, ret_steps);
}

static void test_several_steps_between_readings(void **state)
{
	struct timed_steps t;

	assert_false(ended(TID, 100, &t));
	reported(TID, 200, 1000);
	assert_false(ended(TID, 200, &t));
	ops(TID, 3);
	ops(TID + 1, 10);
	assert_false(ended(TID, 300, &t));
	ops(TID, 2);
	reported(TID + 1, 400, 5000);
	reported(TID, 400, 1700);
	assert_true(ended(TID, 400, &t));
	assert_int_equal(t.from_ns, 199);
	assert_int_equal(t.cpu_ns, 700);
	assert_int_equal(t.steps_nr, 2);
	assert_int_equal(t.ops_nr, 5);
	reported(TID, 500, 1900);
	assert_true(ended(TID, 500, &t));
	assert_int_equal(t.from_ns, 399);
	assert_int_equal(t.cpu_ns, 200);
	assert_int_equal(t.steps_nr, 1);
	assert_int_equal(t.ops_nr, 0);
}

static void test_steps_of_another_thread(void **state)
{
	struct timed_steps t;

	reported(TID, 100, 1000);
	assert_false(ended(TID, 100, &t));
	reported(TID + 1, 200, 9000);
	assert_false(ended(TID + 1, 200, &t));
	ops(TID + 1, 4);
	reported(TID + 1, 300, 9500);
	assert_true(ended(TID + 1, 300, &t));
	assert_int_equal(t.from_ns, 199);
	assert_int_equal(t.cpu_ns, 500);
	assert_int_equal(t.ops_nr, 4);
}

/* A target may say anything. */
static void test_time_that_goes_back(void **state)
{
	struct timed_steps t;

	reported(TID, 100, 1000);
	assert_false(ended(TID, 100, &t));
	reported(TID, 200, 900);
	assert_false(ended(TID, 200, &t));
	reported(TID, 300, 950);
	assert_true(ended(TID, 300, &t));
	assert_int_equal(t.cpu_ns, 50);
}

static void test_old_readings_go(void **state)
{
	struct timed_steps t;

	reported(TID, 100, 1000);
	for (uint64_t i = 0; i < STEP_TIMES_READINGS; i++)
		reported(TID, 200 + i, 2000 + i);
	assert_false(ended(TID, 100, &t));
	assert_false(ended(TID, 200, &t));
	assert_true(ended(TID, 207, &t));
	assert_int_equal(t.cpu_ns, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_several_steps_between_readings, begin),
		cmocka_unit_test_setup(test_steps_of_another_thread, begin),
		cmocka_unit_test_setup(test_time_that_goes_back, begin),
		cmocka_unit_test_setup(test_old_readings_go, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
