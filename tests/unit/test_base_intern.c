/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * base/intern: equal text is one pointer, and it stays.
 */
#include "base/intern.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MANY 5000

static void equal_text_is_one_pointer(void **state)
{
	struct intern *in = intern__new();
	char text[] = "aten::add";
	const char *a = intern__str(in, text), *empty;

	assert_string_equal(a, "aten::add");
	assert_ptr_not_equal(a, text);
	text[6] = 'o';
	assert_string_equal(a, "aten::add");
	assert_ptr_equal(intern__str(in, "aten::add"), a);
	assert_ptr_equal(intern__get(in, "aten::add_", 9), a);
	assert_ptr_not_equal(intern__str(in, "aten::odd"), a);
	empty = intern__str(in, "");
	assert_string_equal(empty, "");
	assert_ptr_equal(intern__get(in, "x", 0), empty);
	intern__free(in);
	intern__free(NULL);
}

static void bytes_after_a_zero_count(void **state)
{
	struct intern *in = intern__new();
	const char *a = intern__get(in, "a\0b", 3);

	assert_ptr_not_equal(a, intern__get(in, "a\0c", 3));
	assert_ptr_not_equal(a, intern__get(in, "a", 1));
	assert_ptr_equal(a, intern__get(in, "a\0b", 3));
	assert_memory_equal(a, "a\0b", 4);
	intern__free(in);
}

static void many_stay_where_they_are(void **state)
{
	struct intern *in = intern__new();
	const char **all = calloc(MANY, sizeof(*all));
	char text[64];

	for (int i = 0; i < MANY; i++) {
		(void)snprintf(text, sizeof(text), "name %d of many", i);
		all[i] = intern__str(in, text);
		assert_non_null(all[i]);
	}
	for (int i = 0; i < MANY; i++) {
		(void)snprintf(text, sizeof(text), "name %d of many", i);
		assert_string_equal(all[i], text);
		assert_ptr_equal(intern__str(in, text), all[i]);
	}
	free(all);
	intern__free(in);
}

static void takes_text_larger_than_a_block(void **state)
{
	struct intern *in = intern__new();
	size_t bytes = 200000;
	char *text = malloc(bytes);
	const char *kept, *small = intern__str(in, "small");

	memset(text, 'x', bytes);
	kept = intern__get(in, text, bytes);
	assert_int_equal(strlen(kept), bytes);
	assert_ptr_equal(intern__get(in, text, bytes), kept);
	assert_ptr_not_equal(intern__get(in, text, bytes - 1), kept);
	assert_ptr_equal(intern__str(in, "small"), small);
	free(text);
	intern__free(in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_text_is_one_pointer),
		cmocka_unit_test(bytes_after_a_zero_count),
		cmocka_unit_test(many_stay_where_they_are),
		cmocka_unit_test(takes_text_larger_than_a_block),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
