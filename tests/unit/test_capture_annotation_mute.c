/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/* What is told between windows, and when one opens. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "capture/policy/annotation_mute.h"

#define MS 1000000ULL
#define S  1000000000ULL

static enum mute_order at(struct annotation_mute *r, uint64_t now_ns, struct mute_input in)
{
	in.now_ns = now_ns;
	return annotation_mute__poll(r, &in);
}

static void test_annotations_are_told(void **state)
{
	struct annotation_mute r = {0};

	for (uint64_t t = S; t < 100 * S; t += S) {
		assert_int_equal(at(&r, t, (struct mute_input){.follows = true}), MUTE_GO_ON);
		assert_false(annotation_mute__is_blind(&r));
	}
	assert_int_equal(at(&r, 100 * S, (struct mute_input){.may_open = true}), MUTE_OPEN);
	assert_false(r.was_muted);
	assert_int_equal(r.seen_ns, 0);
}

/* Dark from `t` on. */
static struct annotation_mute while_muted(uint64_t t)
{
	struct annotation_mute r = {0};

	assert_int_equal(at(&r, t, (struct mute_input){.is_over_budget = true, .follows = true}),
			 MUTE_ASK);
	assert_true(annotation_mute__is_blind(&r) && r.was_muted);
	return r;
}

static void test_dear_ones_are_told_near_windows(void **state)
{
	struct annotation_mute r = while_muted(S);
	struct mute_input in = {.may_open = true, .is_over_budget = true};

	assert_int_equal(at(&r, 2 * S, (struct mute_input){0}), MUTE_GO_ON);
	assert_int_equal(at(&r, 3 * S, in), MUTE_ASK);
	assert_false(annotation_mute__is_blind(&r));
	/* What looking costs may be more than there is: the window comes all the same. */
	in.may_open = false;
	assert_int_equal(at(&r, 3 * S + 100 * MS, in), MUTE_GO_ON);
	in.follows = true;
	assert_int_equal(at(&r, 3 * S + 110 * MS, in), MUTE_GO_ON);
	assert_int_equal(r.seen_ns, 3 * S + 110 * MS);
	assert_int_equal(at(&r, 3 * S + 150 * MS, in), MUTE_GO_ON);
	assert_int_equal(at(&r, 3 * S + 160 * MS, in), MUTE_OPEN);
	/* And after it, for as long. */
	in.off_ns = 4 * S;
	assert_int_equal(at(&r, 4 * S + 10 * MS, in), MUTE_GO_ON);
	assert_false(annotation_mute__is_blind(&r));
	assert_int_equal(at(&r, 4 * S + 50 * MS, in), MUTE_ASK);
	assert_true(annotation_mute__is_blind(&r));
	assert_int_equal(at(&r, 5 * S, in), MUTE_GO_ON);
}

static void test_collectors_that_do_not_follow(void **state)
{
	struct annotation_mute r = while_muted(S);
	const struct mute_input in = {.may_open = true, .is_over_budget = true};

	assert_int_equal(at(&r, 2 * S, in), MUTE_ASK);
	assert_int_equal(at(&r, 2 * S + 900 * MS, in), MUTE_GO_ON);
	assert_int_equal(at(&r, 3 * S, in), MUTE_OPEN);
	/* Nothing is known of steps. */
	assert_int_equal(r.seen_ns, UINT64_MAX);
}

static void test_what_was_dear_is_tried_again(void **state)
{
	struct annotation_mute r = while_muted(S);

	assert_int_equal(at(&r, 60 * S, (struct mute_input){.follows = true}), MUTE_GO_ON);
	assert_int_equal(
		at(&r, 61 * S, (struct mute_input){.follows = true, .is_over_budget = true}),
		MUTE_GO_ON);
	assert_int_equal(at(&r, 62 * S, (struct mute_input){.follows = true}), MUTE_ASK);
	assert_false(annotation_mute__is_blind(&r));
	assert_true(r.was_muted);
}

static void test_given_up(void **state)
{
	struct annotation_mute r = while_muted(S);

	assert_int_equal(at(&r, 2 * S, (struct mute_input){.may_open = true}), MUTE_ASK);
	annotation_mute__give_up(&r);
	assert_int_equal(at(&r, 4 * S, (struct mute_input){.follows = true}), MUTE_ASK);
	assert_true(annotation_mute__is_blind(&r));
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
