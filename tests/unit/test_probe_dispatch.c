/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Operators that are called without their own function, and ranges, on tests/fake/ops. Needs root
 * and BPF, and fails without.
 */
#include "unit/probe_program.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* Operators that are called without their own function. */
static void test_dispatch(void **state)
{
	struct probed *f = *state;

	probed_begin(f, &probed_defaults);
	probe_session__start(f->session);
	probed_command(f, "o1 ");
	probed_command(f, "o2 ");
	assert_int_equal(f->got.ops_nr, 8);
	assert_int_equal(f->got.names_nr, 1);
	assert_string_equal(f->got.names[0].overload, "Tensor");
	for (size_t i = 0; i < 8; i += 4) {
		probed_expect_op(f, i + 2, "aten::add_", 0);
		probed_expect_op(f, i + 3, "test::add_", 0);
		probed_expect_inside(f, i + 2, i + 3);
		assert_true(f->got.ops[i + 3].parent == 0);
	}
	assert_int_equal(probed_hits(f), 16);
	probed_expect_no_loss_but(f, GP_LOSS_NR);
	probed_command(f, "O5 ");
	assert_int_equal(f->got.ops_nr, 13);
	probed_expect_op(f, 12, "aten::mul", 0);
	assert_true(f->got.ops[12].parent == 0);
	probed_expect_no_loss_but(f, GP_LOSS_BOXED_UNSEEN);
	assert_int_equal(probed_loss(f, GP_LOSS_BOXED_UNSEEN), 5);
	probed_command(f, "s1 ");
	assert_int_equal(probed_loss(f, GP_LOSS_BOXED_UNSEEN), 5);
	assert_int_equal(probed_loss(f, GP_LOSS_SCRIPT_UNSEEN), 1);
	/* One that throws, and one after it. */
	probed_command(f, "X0 ");
	probed_command(f, "o1 ");
	assert_int_equal(f->got.ops_nr, 20);
	probed_expect_op(f, 15, "test::fail", GP_OP_EXCEPTION);
	probed_expect_op(f, 19, "test::add_", 0);
	assert_true(f->got.ops[19].parent == 0);
}

static void test_ranges(void **state)
{
	struct probed *f = *state;

	probed_begin(f, &probed_defaults);
	probe_session__start(f->session);
	for (size_t i = 0; i < 8; i += 4) {
		probed_command(f, "g1 ");
		assert_int_equal(f->got.ops_nr, i + 4);
		probed_expect_op(f, i, "aten::mul", 0);
		probed_expect_op(f, i + 1, "test::mul", 0);
		probed_expect_inside(f, i, i + 1);
		probed_expect_inside(f, i + 1, i + 2);
		probed_expect_inside(f, i + 2, i + 3);
		assert_string_equal(probed_name_of(f, &f->got.ops[i + 2]),
				    "a range whose name does not fit into the string itself");
		assert_string_equal(probed_name_of(f, &f->got.ops[i + 3]), "outer");
		assert_int_equal(f->got.ops[i + 2].scope, GP_SCOPE_USER);
		assert_int_equal(f->got.ops[i + 3].scope, GP_SCOPE_USER);
		assert_true(f->got.ops[i + 3].parent == 0);
	}
	/* Five operators and the entry and exit inside one, and two names of ranges. */
	assert_int_equal(probed_hits(f), 2 * (5 * 2 + 2 + 2));
	probed_expect_no_loss_but(f, GP_LOSS_NR);
}

/* More ranges in each other than are followed: all that found a place are told, and what comes
 * after them. */
static void test_deep_ranges(void **state)
{
	const size_t over = 10;
	struct probed *f = *state;
	size_t ranges_nr = 0;

	probed_begin(f, &probed_defaults);
	probe_session__start(f->session);
	probed_command(f, "G106 ");
	/* An operator calls another: beside the last range but one there is room for one of them.
	 */
	assert_int_equal(probed_loss(f, GP_LOSS_DEPTH), over + 2 * over + 1);
	for (size_t i = 0; i < f->got.ops_nr; i++) {
		assert_int_equal(f->got.ops[i].head.flags, 0);
		ranges_nr += f->got.ops[i].scope == GP_SCOPE_USER;
	}
	assert_int_equal(ranges_nr, GP_OP_DEPTH);
	assert_int_equal(f->got.ops_nr, GP_OP_DEPTH + 2 * GP_OP_DEPTH - 1);
	probed_command(f, "g1 ");
	assert_string_equal(probed_name_of(f, &f->got.ops[f->got.ops_nr - 1]), "outer");
	assert_true(f->got.ops[f->got.ops_nr - 1].parent == 0);
	probed_expect_no_loss_but(f, GP_LOSS_DEPTH);
}

/* Of those that have their own function and those whose names are found in memory. */
static void test_dispatch_by_glob(void **state)
{
	struct probe_options some = probed_defaults;
	struct probed *f = *state;

	some.ops_glob = "aten::add_,x,test::mu?";
	probed_begin(f, &some);
	probe_session__start(f->session);
	probed_command(f, "o1 ");
	assert_int_equal(f->got.ops_nr, 1);
	probed_expect_op(f, 0, "aten::add_", 0);
	assert_true(f->got.ops[0].parent == 0);
	/* Ranges are told, whatever their names are, and what was chosen is in them. */
	probed_command(f, "g1 ");
	assert_int_equal(f->got.ops_nr, 4);
	probed_expect_op(f, 1, "test::mul", 0);
	probed_expect_inside(f, 1, 2);
	probed_expect_inside(f, 2, 3);
	assert_string_equal(probed_name_of(f, &f->got.ops[3]), "outer");
	probed_expect_no_loss_but(f, GP_LOSS_NR);
	/* What was not chosen and throws is closed, and is no exception of ours. */
	probed_command(f, "X0 ");
	probed_command(f, "o1 ");
	probed_expect_op(f, f->got.ops_nr - 1, "aten::add_", 0);
	assert_true(f->got.ops[f->got.ops_nr - 1].parent == 0);
	for (size_t i = 4; i < f->got.ops_nr; i++)
		assert_true(f->got.ops[i].head.flags == 0);
	probed_expect_no_loss_but(f, GP_LOSS_NR);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, probed_set_up, probed_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(test_dispatch), TEST(test_ranges),
					   TEST(test_deep_ranges), TEST(test_dispatch_by_glob)};
	int failed = cmocka_run_group_tests(tests, probed_find_program, NULL);

	probed_build = "wheel";
	failed += cmocka_run_group_tests(tests, probed_find_program, NULL);
	probed_build = "oldwheel";
	return failed + cmocka_run_group_tests(tests, probed_find_program, NULL);
}
