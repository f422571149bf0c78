/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The cycle in a sequence, with and without something around it.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cycle_detect.h"
#include "common/step_annotations.h"

static int find(const char *text, struct cycle *p)
{
	uint32_t symbols[4096];
	size_t nr = strlen(text);

	assert_true(nr <= 4096);
	for (size_t i = 0; i < nr; i++)
		symbols[i] = (unsigned char)text[i];
	return cycle_detect(symbols, nr, p);
}

static void expect(const char *text, size_t first, size_t run, size_t length)
{
	struct cycle p = {0};

	assert_int_equal(find(text, &p), 0);
	assert_int_equal(p.length, length);
	assert_int_equal(p.first, first);
	assert_int_equal(p.run, run);
}

static void test_cycles(void **state)
{
	expect("abcabcabc", 0, 9, 3);
	expect("aaaa", 0, 4, 1);
	/* Cut at both ends. */
	expect("bcabcabcabca", 0, 12, 3);
	/* A cycle with smaller cycles in it: layers of a network. */
	expect("xcrcrcrcrlxcrcrcrcrlxcrcrcrcrlxcrcrcrcrl", 0, 40, 10);
	/* Before and after it. */
	expect("123abcabcabcabc45", 3, 12, 3);
}

static void test_no_cycle(void **state)
{
	struct cycle p = {7, 7, 7};

	assert_int_equal(find("", &p), -ENOENT);
	assert_int_equal(find("abcdefgh", &p), -ENOENT);
	assert_int_equal(find("abcabc", &p), -ENOENT);
	/* Less than half of it. */
	assert_int_equal(find("abababqwertyuiopzxcv", &p), -ENOENT);
	assert_int_equal(p.length, 7);
}

/* A cycle as long as a large model's, in as many symbols as are looked at and more. */
static void test_long(void **state)
{
	static uint32_t symbols[PERIOD_SYMBOLS_MAX + 1000];
	struct cycle p;

	for (size_t i = 0; i < sizeof(symbols) / sizeof(*symbols); i++)
		symbols[i] = i % 1000 == 999 ? 77 : (uint32_t)(i % 1000 % 10);
	assert_int_equal(cycle_detect(symbols, sizeof(symbols) / sizeof(*symbols), &p), 0);
	assert_int_equal(p.length, 1000);
	assert_int_equal(p.run, PERIOD_SYMBOLS_MAX);
}

static void test_markers(void **state)
{
	assert_int_equal(step_marker_of("ProfilerStep#12"), STEP_MARKER_PROFILER);
	assert_int_equal(step_marker_number("ProfilerStep#12"), 12);
	assert_int_equal(step_marker_number("else#12"), 0);
	assert_int_equal(step_marker_of("Optimizer.step#SGD.step"), STEP_MARKER_OPTIMIZER);
	assert_int_equal(step_marker_of("Optimizer.zero_grad#SGD.zero_grad"), STEP_MARKER_NONE);
	assert_int_equal(
		step_marker_of("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"),
		STEP_MARKER_DATALOADER);
	assert_int_equal(step_marker_of("enumerate(DataLoader)#x.__init__"), STEP_MARKER_NONE);
	assert_int_equal(step_marker_of(""), STEP_MARKER_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cycles),
		cmocka_unit_test(test_no_cycle),
		cmocka_unit_test(test_long),
		cmocka_unit_test(test_markers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
