/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/* What is told between windows, and when one opens. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "capture/rest.h"

#define MS 1000000ULL
#define S  1000000000ULL

static enum rest_order at(struct rest *r, uint64_t now_ns, struct rest_input in)
{
	in.now_ns = now_ns;
	return rest__turn(r, &in);
}

static void test_annotations_are_told(void **state)
{
	struct rest r = {0};

	for (uint64_t t = S; t < 100 * S; t += S) {
		assert_int_equal(at(&r, t, (struct rest_input){.follows = true}), REST_GO_ON);
		assert_false(rest__is_blind(&r));
	}
	assert_int_equal(at(&r, 100 * S, (struct rest_input){.may_open = true}), REST_OPEN);
	assert_false(r.was_dark);
	assert_int_equal(r.seen_ns, 0);
}

/* Dark from `t` on. */
static struct rest in_the_dark(uint64_t t)
{
	struct rest r = {0};

	assert_int_equal(at(&r, t, (struct rest_input){.is_dear = true, .follows = true}),
			 REST_ASK);
	assert_true(rest__is_blind(&r) && r.was_dark);
	return r;
}

static void test_dear_ones_are_told_near_windows(void **state)
{
	struct rest r = in_the_dark(S);
	struct rest_input in = {.may_open = true, .is_dear = true};

	assert_int_equal(at(&r, 2 * S, (struct rest_input){0}), REST_GO_ON);
	assert_int_equal(at(&r, 3 * S, in), REST_ASK);
	assert_false(rest__is_blind(&r));
	/* What looking costs may be more than there is: the window comes all the same. */
	in.may_open = false;
	assert_int_equal(at(&r, 3 * S + 100 * MS, in), REST_GO_ON);
	in.follows = true;
	assert_int_equal(at(&r, 3 * S + 110 * MS, in), REST_GO_ON);
	assert_int_equal(r.seen_ns, 3 * S + 110 * MS);
	assert_int_equal(at(&r, 3 * S + 150 * MS, in), REST_GO_ON);
	assert_int_equal(at(&r, 3 * S + 160 * MS, in), REST_OPEN);
	/* And after it, for as long. */
	in.off_ns = 4 * S;
	assert_int_equal(at(&r, 4 * S + 10 * MS, in), REST_GO_ON);
	assert_false(rest__is_blind(&r));
	assert_int_equal(at(&r, 4 * S + 50 * MS, in), REST_ASK);
	assert_true(rest__is_blind(&r));
	assert_int_equal(at(&r, 5 * S, in), REST_GO_ON);
}

static void test_collectors_that_do_not_follow(void **state)
{
	struct rest r = in_the_dark(S);
	const struct rest_input in = {.may_open = true, .is_dear = true};

	assert_int_equal(at(&r, 2 * S, in), REST_ASK);
	assert_int_equal(at(&r, 2 * S + 900 * MS, in), REST_GO_ON);
	assert_int_equal(at(&r, 3 * S, in), REST_OPEN);
	/* Nothing is known of steps. */
	assert_int_equal(r.seen_ns, UINT64_MAX);
}

static void test_what_was_dear_is_tried_again(void **state)
{
	struct rest r = in_the_dark(S);

	assert_int_equal(at(&r, 60 * S, (struct rest_input){.follows = true}), REST_GO_ON);
	assert_int_equal(at(&r, 61 * S, (struct rest_input){.follows = true, .is_dear = true}),
			 REST_GO_ON);
	assert_int_equal(at(&r, 62 * S, (struct rest_input){.follows = true}), REST_ASK);
	assert_false(rest__is_blind(&r));
	assert_true(r.was_dark);
}

static void test_given_up(void **state)
{
	struct rest r = in_the_dark(S);

	assert_int_equal(at(&r, 2 * S, (struct rest_input){.may_open = true}), REST_ASK);
	rest__give_up(&r);
	assert_int_equal(at(&r, 4 * S, (struct rest_input){.follows = true}), REST_ASK);
	assert_true(rest__is_blind(&r));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_annotations_are_told),
		cmocka_unit_test(test_dear_ones_are_told_near_windows),
		cmocka_unit_test(test_collectors_that_do_not_follow),
		cmocka_unit_test(test_what_was_dear_is_tried_again),
		cmocka_unit_test(test_given_up),
	};

	return cmocka_run_group_tests_name("capture_rest", tests, NULL, NULL);
}
