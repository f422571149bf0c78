/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Fields of /proc/PID/status: numbers by their place, masks, and what is missing.
 */
#include "inspect/access/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static const char text[] = "Name:\tNSpid: 7\n"
			   "Uid:\t1\t2\t3\t4\n"
			   "NSpid:\t100\t20\t3\n"
			   "Empty:\t\n"
			   "SigCgt:\t00000001000000ff\n";

static void test_number(void **state)
{
	long n = -5;

	assert_true(status_number(text, "Uid", 0, &n));
	assert_int_equal(n, 1);
	assert_true(status_number(text, "Uid", 3, &n));
	assert_int_equal(n, 4);
	/* The name of the process is no field. */
	assert_true(status_number(text, "NSpid", 0, &n));
	assert_int_equal(n, 100);
	assert_true(status_number(text, "NSpid", STATUS_LAST, &n));
	assert_int_equal(n, 3);
}

static void test_missing(void **state)
{
	long n = -5;

	assert_false(status_number(text, "Uid", 4, &n));
	assert_false(status_number(text, "Empty", 0, &n));
	assert_false(status_number(text, "Empty", STATUS_LAST, &n));
	assert_false(status_number(text, "Ui", 0, &n));
	assert_false(status_number(text, "Seccomp", 0, &n));
	assert_false(status_number(NULL, "Uid", 0, &n));
	assert_int_equal(n, -5);
	assert_int_equal(status_read_number(-1, 0, "Uid", 0), -1);
	assert_int_equal(status_read_number(0, 0, "NoSuchField", 0), -1);
}

static void test_mask(void **state)
{
	assert_int_equal(status_mask(text, "SigCgt"), 0x1000000ff);
	assert_int_equal(status_mask(text, "CapEff"), 0);
	assert_int_equal(status_mask(NULL, "CapEff"), 0);
}

static void test_own(void **state)
{
	assert_int_equal(status_read_number(0, 0, "Tgid", 0), getpid());
	assert_int_equal(status_read_number(getpid(), getpid(), "Pid", 0), getpid());
	assert_int_equal(status_read_number(getpid(), 0, "Uid", 1), geteuid());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_number),
		cmocka_unit_test(test_missing),
		cmocka_unit_test(test_mask),
		cmocka_unit_test(test_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
