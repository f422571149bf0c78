/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What CUPTI tells after the end of a capture: calls that began later are dropped with what they
 * launched, whatever is told first.
 */
#include "capture/recordings/late_records.h"
#include "wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define END_NS 1000

static struct late_records tail;
static int kinds[16], nr;

static void add_call(uint16_t process, uint32_t correlation_id, uint64_t start_ns)
{
	struct gp_ev_api ev = {.head = {.kind = GP_EV_API, .process = process, .time_ns = 5000},
			       .start_ns = start_ns,
			       .correlation_id = correlation_id};

	assert_true(late_records__keep(&tail, &ev, sizeof(ev), END_NS));
}

static void add_kernel(uint16_t process, uint32_t correlation_id)
{
	struct gp_ev_kernel ev = {
		.head = {.kind = GP_EV_KERNEL, .process = process, .time_ns = 5000},
		.start_ns = 4000,
		.correlation_id = correlation_id};

	assert_true(late_records__keep(&tail, &ev, sizeof(ev), END_NS));
}

static void add_overhead(uint64_t start_ns)
{
	struct gp_ev_overhead ev = {.head = {.kind = GP_EV_OVERHEAD, .time_ns = 5000},
				    .start_ns = start_ns};

	assert_true(late_records__keep(&tail, &ev, sizeof(ev), END_NS));
}

static int note(const void *event, size_t bytes, void *arg)
{
	kinds[nr++] = ((const struct gp_ev_head *)event)->kind;
	return 0;
}

/* How many are left, of `kind`. */
static int left(int kind)
{
	int found = 0;

	nr = 0;
	assert_int_equal(late_records__each(&tail, note, NULL), 0);
	for (int i = 0; i < nr; i++)
		found += kinds[i] == kind;
	return found;
}

static int begin(void **state)
{
	tail = (struct late_records){0};
	return 0;
}

static int end(void **state)
{
	late_records__done(&tail);
	return 0;
}

static void test_in_time(void **state)
{
	add_kernel(0, 1);
	add_call(0, 1, END_NS);
	add_kernel(0, 7); /* the call was told before */
	add_overhead(END_NS);
	assert_int_equal(left(GP_EV_API), 1);
	assert_int_equal(left(GP_EV_KERNEL), 2);
	assert_int_equal(left(GP_EV_OVERHEAD), 1);
}

static void test_later(void **state)
{
	add_kernel(0, 1);
	add_call(0, 1, END_NS + 1);
	add_call(0, 2, END_NS + 1);
	add_kernel(0, 2);
	add_overhead(END_NS + 1);
	assert_int_equal(left(GP_EV_API) + left(GP_EV_KERNEL) + left(GP_EV_OVERHEAD), 0);
	/* Another process counts for itself. */
	add_kernel(1, 2);
	assert_int_equal(left(GP_EV_KERNEL), 1);
}

/* The driver's call in a runtime call may have its id, and begin later. */
static void test_call_in_a_call(void **state)
{
	add_call(0, 1, END_NS + 50);
	add_call(0, 1, END_NS - 50);
	add_kernel(0, 1);
	add_call(0, 2, END_NS - 50);
	add_call(0, 2, END_NS + 50);
	add_kernel(0, 2);
	assert_int_equal(left(GP_EV_API), 2);
	assert_int_equal(left(GP_EV_KERNEL), 2);
}

static int refuse(const void *event, size_t bytes, void *arg)
{
	nr++;
	return -5;
}

static void test_error(void **state)
{
	add_kernel(0, 1);
	add_kernel(0, 2);
	nr = 0;
	assert_int_equal(late_records__each(&tail, refuse, NULL), -5);
	assert_int_equal(nr, 1);
}

/* A collector that tells of nothing but late calls takes no memory without end; what they launch
 * has no call then, and is kept for that to be counted. */
static void test_too_many(void **state)
{
	for (uint32_t i = 1; i <= (1 << 20) + 10; i++)
		add_call(0, i, END_NS + 1);
	assert_true(tail.calls.nr <= 1 << 20);
	add_kernel(0, 5);
	add_kernel(0, (1 << 20) + 5);
	assert_int_equal(left(GP_EV_KERNEL), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_in_time, begin, end),
		cmocka_unit_test_setup_teardown(test_later, begin, end),
		cmocka_unit_test_setup_teardown(test_call_in_a_call, begin, end),
		cmocka_unit_test_setup_teardown(test_error, begin, end),
		cmocka_unit_test_setup_teardown(test_too_many, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
