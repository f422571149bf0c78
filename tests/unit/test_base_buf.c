/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * base/buf: numbers as printf would write them, strings as JSON must have them.
 */
#include "base/buf.h"

#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const int64_t numbers[] = {0,	 1,	  9,	     10,	99,	      100,
				  999,	 1000,	  1001,	     -1,	-10,	      -999,
				  -1000, -1001,	  123456,    1234567,	-1234567,     INT32_MAX,
				  10,	 1000000, INT64_MAX, INT64_MIN, INT64_MIN + 1};

static void writes_numbers(void **state)
{
	struct buf b = {0};
	char expected[64];

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		buf__clear(&b);
		buf__i64(&b, numbers[i]);
		(void)snprintf(expected, sizeof(expected), "%" PRId64, numbers[i]);
		assert_string_equal(b.bytes, expected);
		buf__clear(&b);
		buf__u64(&b, (uint64_t)numbers[i]);
		(void)snprintf(expected, sizeof(expected), "%" PRIu64, (uint64_t)numbers[i]);
		assert_string_equal(b.bytes, expected);
		assert_int_equal(b.nr, strlen(expected));
	}
	buf__done(&b);
}

static void writes_microseconds(void **state)
{
	static const struct {
		int64_t ns;
		const char *us;
	} times[] = {
		{0, "0.000"},
		{1, "0.001"},
		{10, "0.010"},
		{100, "0.100"},
		{999, "0.999"},
		{1000, "1.000"},
		{1234567, "1234.567"},
		{-1, "-0.001"},
		{-1500, "-1.500"},
		{INT64_MAX, "9223372036854775.807"},
		{INT64_MIN, "-9223372036854775.808"},
	};
	struct buf b = {0};

	for (size_t i = 0; i < sizeof(times) / sizeof(*times); i++) {
		buf__clear(&b);
		buf__us(&b, times[i].ns);
		assert_string_equal(b.bytes, times[i].us);
	}
	buf__done(&b);
}

static void writes_json_strings(void **state)
{
	static const struct {
		const char *text, *json;
	} strings[] = {
		{"", "\"\""},
		{"aten::add", "\"aten::add\""},
		{"a\"b\\c/", "\"a\\\"b\\\\c/\""},
		{"\n\t\x01\x1f\x7f", "\"\\u000a\\u0009\\u0001\\u001f\\u007f\""},
		{"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80",
		 "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\""},
		/* no sequence at all, cut sequences, at the end too */
		{"\xff", "\"\\ufffd\""},
		{"\x80x", "\"\\ufffdx\""},
		{"a\xc3", "\"a\\ufffd\""},
		{"\xc3(", "\"\\ufffd(\""},
		{"\xe2\x82", "\"\\ufffd\\ufffd\""},
		{"\xf0\x9f\x98", "\"\\ufffd\\ufffd\\ufffd\""},
		/* overlong, surrogate, beyond U+10FFFF */
		{"\xc0\xaf", "\"\\ufffd\\ufffd\""},
		{"\xe0\x80\xaf", "\"\\ufffd\\ufffd\\ufffd\""},
		{"\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\""},
		{"\xf4\x90\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\""},
		{"\xf0\x80\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\""},
		/* the edges of what is well-formed */
		{"\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbd",
		 "\"\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbd\""},
		{"\xf4\x8f\xbf\xbf", "\"\\udbff\\udfff\""},
	};
	struct buf b = {0};

	for (size_t i = 0; i < sizeof(strings) / sizeof(*strings); i++) {
		/* In memory of its own size: a step behind its end is seen by a sanitizer. */
		char *exact = strdup(strings[i].text);

		buf__clear(&b);
		buf__json(&b, exact);
		assert_string_equal(b.bytes, strings[i].json);
		free(exact);
	}
	buf__done(&b);
}

static void grows_and_prints(void **state)
{
	struct buf b = {0};
	char piece[1001];

	memset(piece, 'p', 1000);
	piece[1000] = '\0';
	for (int i = 0; i < 300; i++)
		buf__str(&b, piece);
	buf__printf(&b, "%s-%d", piece, 42);
	buf__add(&b, NULL, 0);
	buf__add(&b, "\0x", 2);
	assert_int_equal(buf__error(&b), 0);
	assert_int_equal(b.nr, 300 * 1000 + 1000 + 3 + 2);
	assert_int_equal(strlen(b.bytes), b.nr - 2);
	assert_int_equal(b.bytes[b.nr - 1], 'x');
	assert_int_equal(b.bytes[b.nr], '\0');
	buf__clear(&b);
	assert_int_equal(b.nr, 0);
	assert_string_equal(b.bytes, "");
	buf__done(&b);
	assert_null(b.bytes);
	buf__clear(&b);
}

/* Printing exactly what fits must leave room for the zero: every length around the first sizes. */
static void prints_at_every_length(void **state)
{
	for (size_t fill = 0; fill < 600; fill++) {
		struct buf b = {0};
		char expected[16];

		for (size_t i = 0; i < fill; i++)
			buf__char(&b, 'x');
		buf__printf(&b, "%zu", fill);
		(void)snprintf(expected, sizeof(expected), "%zu", fill);
		assert_int_equal(buf__error(&b), 0);
		assert_int_equal(b.nr, fill + strlen(expected));
		assert_string_equal(b.bytes + fill, expected);
		buf__done(&b);
	}
}

static void remembers_failure(void **state)
{
	struct buf b = {0};

	buf__str(&b, "before");
	buf__add(&b, "x", SIZE_MAX / 2 + 100);
	assert_int_equal(buf__error(&b), -ENOMEM);
	buf__str(&b, "after");
	assert_int_equal(buf__error(&b), -ENOMEM);
	assert_string_equal(b.bytes, "before");
	buf__done(&b);
	assert_int_equal(buf__error(&b), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes_numbers),	  cmocka_unit_test(writes_microseconds),
		cmocka_unit_test(writes_json_strings),	  cmocka_unit_test(grows_and_prints),
		cmocka_unit_test(prints_at_every_length), cmocka_unit_test(remembers_failure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
