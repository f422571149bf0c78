/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Python's frames among native ones: in a list, numbers from 100 on are Python's, a star marks the
 * outermost frame of a call of the interpreter, and such a call.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "capture/symbols/mixed_stacks.h"

static struct frame_list list(const char *text, uint32_t flags)
{
	CLEANUP(cleanup_free) char *copy = strdup(text);
	struct frame_list l = {.flags = flags};
	char *rest = copy, *word;

	while ((word = strsep(&rest, " "))) {
		if (!*word)
			continue;
		l.marks[l.nr] = strchr(word, '*');
		l.numbers[l.nr++] = (uint32_t)strtoul(word, NULL, 10);
	}
	return l;
}

static void check(const char *native, uint32_t native_flags, const char *python,
		  uint32_t python_flags, const char *expected, uint32_t expected_flags)
{
	struct frame_list n = list(native, native_flags), p = list(python, python_flags);
	struct frame_list e = list(expected, 0);

	mix_stacks(&n, &p);
	assert_int_equal(n.nr, e.nr);
	assert_memory_equal(n.numbers, e.numbers, e.nr * sizeof(*e.numbers));
	assert_int_equal(n.flags, expected_flags);
}

static void test_each_call_gives_way_to_its_frames(void **state)
{
	check("1 2* 3 4* 5", 0, "100 101* 102*", 0, "1 100 101 3 102 5", 0);
	/* Up to 3.10 each frame is a call. */
	check("1 2* 3* 4", 0, "100* 101*", 0, "1 100 101 4", 0);
	check("1 2 3", 0, "", 0, "1 2 3", 0);
	check("", 0, "", 0, "", 0);
}

static void test_nothing_is_left_out(void **state)
{
	/* More calls than Python knows of, and fewer. */
	check("1 2* 3 4* 5", 0, "100*", 0, "1 100 3 4 5", GP_STACK_INCOMPLETE);
	check("1 2* 3", 0, "100* 101*", 0, "1 100 3 101", GP_STACK_INCOMPLETE);
	/* The native walk did not come so far out. */
	check("1 2* 3", GP_STACK_INCOMPLETE, "100* 101 102*", 0, "1 100 3 101 102",
	      GP_STACK_INCOMPLETE);
	check("1 2* 3", GP_STACK_TRUNCATED, "100* 101*", 0, "1 100 3 101", GP_STACK_TRUNCATED);
	/* Nor did Python's. */
	check("1 2* 3 4* 5", 0, "100", GP_STACK_TRUNCATED, "1 100 3 4 5", GP_STACK_TRUNCATED);
	check("1", 0, "100*", GP_STACK_INCOMPLETE, "1 100", GP_STACK_INCOMPLETE);
}

static void test_the_deepest(void **state)
{
	struct frame_list native = {.nr = GP_STACK_FRAMES}, python = {.nr = GP_STACK_FRAMES};

	mix_stacks(&native, &python);
	assert_int_equal(native.nr, 2 * GP_STACK_FRAMES);
	native = (struct frame_list){.nr = GP_STACK_FRAMES};
	memset(native.marks, true, GP_STACK_FRAMES);
	mix_stacks(&native, &python);
	assert_int_equal(native.nr, 2 * GP_STACK_FRAMES - 1);
}

static void test_kept_stacks(void **state)
{
	struct frame_list python = list("100 101* 102*", GP_STACK_INCOMPLETE), got;
	struct kept_stacks k = {0};

	assert_false(kept_stacks__get(&k, 1, &got));
	assert_int_equal(kept_stacks__add(&k, 7, &python), 0);
	python = list("103*", 0);
	assert_int_equal(kept_stacks__add(&k, 8, &python), 0);
	assert_true(kept_stacks__get(&k, 7, &got));
	assert_int_equal(got.nr, 3);
	assert_int_equal(got.flags, GP_STACK_INCOMPLETE);
	assert_int_equal(got.numbers[1], 101);
	assert_false(got.marks[0]);
	assert_true(got.marks[1] && got.marks[2]);
	assert_true(kept_stacks__get(&k, 8, &got));
	assert_int_equal(got.nr, 1);
	assert_int_equal(got.numbers[0], 103);
	assert_false(kept_stacks__get(&k, 9, &got));
	assert_false(kept_stacks__get(&k, 6, &got));
	/* What a number stands for does not change. */
	assert_int_equal(kept_stacks__add(&k, 7, &python), -EEXIST);
	assert_true(kept_stacks__get(&k, 7, &got));
	assert_int_equal(got.nr, 3);
	kept_stacks__done(&k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_call_gives_way_to_its_frames),
		cmocka_unit_test(test_nothing_is_left_out),
		cmocka_unit_test(test_the_deepest),
		cmocka_unit_test(test_kept_stacks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
