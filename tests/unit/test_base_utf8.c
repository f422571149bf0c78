/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Texts that were cut: at every byte, what is left ends with a whole character.
 */
#include "base/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void test_cut_anywhere(void **state)
{
	/* Characters of one byte to four: these many bytes are whole. */
	static const char text[] = "a\xc3\xa9\xe6\x97\xa5\xf0\x9f\x8e\x89z";
	static const size_t whole[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11};

	assert_int_equal(sizeof(text), sizeof(whole) / sizeof(whole[0]));
	for (size_t bytes = 0; bytes < sizeof(text); bytes++)
		assert_int_equal(utf8_whole_bytes(text, bytes), whole[bytes]);
}

/* What is no UTF-8 is left as it is, but for a last byte that begins a character. */
static void test_other_texts(void **state)
{
	assert_int_equal(utf8_whole_bytes("\x80\x80", 2), 2);
	assert_int_equal(utf8_whole_bytes("\x80\x80\x80\x80\x80", 5), 5);
	assert_int_equal(utf8_whole_bytes("caf\xe9", 4), 3);
	assert_int_equal(utf8_whole_bytes("\xe9s", 2), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cut_anywhere),
		cmocka_unit_test(test_other_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
