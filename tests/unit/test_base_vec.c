/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * base/vec: growth keeps the items, and sizes that cannot be are refused.
 */
#include "base/vec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct numbers {
	VEC(uint32_t) list;
};

static void keeps_what_was_pushed(void **state)
{
	struct numbers n = {0};

	for (uint32_t i = 0; i < 10000; i++)
		assert_int_equal(vec_push(&n.list, i * 7), 0);
	assert_int_equal(n.list.nr, 10000);
	assert_true(n.list.cap >= n.list.nr);
	for (uint32_t i = 0; i < 10000; i++)
		assert_int_equal(n.list.items[i], i * 7);
	vec_done(&n.list);
	assert_null(n.list.items);
	assert_int_equal(n.list.nr + n.list.cap, 0);
	assert_int_equal(vec_push(&n.list, 5), 0);
	assert_int_equal(n.list.items[0], 5);
	vec_done(&n.list);
}

static void reserves_enough(void **state)
{
	struct numbers n = {0};
	uint32_t *items;

	assert_int_equal(vec_reserve(&n.list, 1000), 0);
	assert_true(n.list.cap >= 1000);
	assert_int_equal(n.list.nr, 0);
	items = n.list.items;
	for (uint32_t i = 0; i < 1000; i++)
		assert_int_equal(vec_push(&n.list, i), 0);
	assert_ptr_equal(n.list.items, items);
	vec_done(&n.list);
}

static void refuses_absurd_sizes(void **state)
{
	struct numbers n = {0};

	assert_int_equal(vec_push(&n.list, 1), 0);
	assert_int_equal(vec_reserve(&n.list, SIZE_MAX), -ENOMEM);
	assert_int_equal(vec_reserve(&n.list, SIZE_MAX / 2), -ENOMEM);
	assert_int_equal(n.list.nr, 1);
	assert_int_equal(n.list.items[0], 1);
	vec_done(&n.list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_what_was_pushed),
		cmocka_unit_test(reserves_enough),
		cmocka_unit_test(refuses_absurd_sizes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
