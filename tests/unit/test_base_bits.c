/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/bits.h"

static void test_bits(void **state)
{
	static const size_t some[] = {0, 63, 64, 1000000, 5};
	struct bits b = {0};

	assert_false(bits__has(&b, 0));
	for (size_t i = 0; i < sizeof(some) / sizeof(*some); i++) {
		assert_false(bits__has(&b, some[i]));
		assert_int_equal(bits__set(&b, some[i]), 0);
		assert_int_equal(bits__set(&b, some[i]), 0);
		assert_true(bits__has(&b, some[i]));
	}
	assert_false(bits__has(&b, 1));
	assert_false(bits__has(&b, 999999));
	assert_false(bits__has(&b, SIZE_MAX));
	bits__done(&b);
	assert_false(bits__has(&b, 63));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_bits)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
