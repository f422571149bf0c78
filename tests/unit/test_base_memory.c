/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

#include "base/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define MEMINFO "MemTotal:       24683520 kB\nMemFree: 1 kB\nMemAvailable:   23579136 kB\n"

static void test_parse(void **state)
{
	struct memory_now now;

	(void)state;
	assert_true(memory_parse("4000 1234 900 1 0 2 0\n", MEMINFO, 4096, &now));
	assert_int_equal(now.own, 1234 * 4096);
	assert_int_equal(now.left, 23579136ULL * 1024);
}

static void test_unknown(void **state)
{
	struct memory_now now;

	(void)state;
	assert_false(memory_parse("", MEMINFO, 4096, &now));
	assert_false(memory_parse("4000 x", MEMINFO, 4096, &now));
	/* Kernels before 3.14. */
	assert_false(memory_parse("4000 1234 900", "MemTotal: 1 kB\nMemFree: 1 kB\n", 4096, &now));
	assert_false(memory_parse("4000 18446744073709551615 9", MEMINFO, 4096, &now));
	assert_false(memory_parse("4000 1234 9", "x\nMemAvailable: 18446744073709551615 kB\n", 4096,
				  &now));
}

static void test_now(void **state)
{
	struct memory_now now;

	(void)state;
	assert_true(memory_now(&now));
	assert_true(now.own > 100000 && now.left > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_now),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
