/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The JSON writer: what stands between values in each style, escapes and number formats.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/json_writer.h"

/* What was written since the last look. */
static void check(struct buf *out, const char *wanted)
{
	assert_int_equal(buf__error(out), 0);
	assert_string_equal(out->bytes ? out->bytes : "", wanted);
	assert_int_equal(out->nr, strlen(wanted));
	buf__clear(out);
}

/* The same values in any style. */
static void nested(struct buf *out, const struct json_style *style)
{
	struct json_writer j;

	json__init(&j, out);
	json__object(&j, style);
	json__put_u64(&j, "a", 1);
	json__put_array(&j, "b", style);
	json__i64(&j, -2);
	json__object(&j, style);
	json__end(&j);
	json__array(&j, style);
	json__end(&j);
	json__end(&j);
	json__put_word(&j, "c", "d");
	json__end(&j);
}

static void test_styles(void **state)
{
	struct buf out = {0};

	nested(&out, &json_tight);
	check(&out, "{\"a\":1,\"b\":[-2,{},[]],\"c\":\"d\"}");
	nested(&out, &json_spaced);
	check(&out, "{\"a\": 1, \"b\": [-2, {}, []], \"c\": \"d\"}");
	nested(&out, &json_document);
	check(&out, "{\n  \"a\": 1,\n  \"b\": [\n  -2,\n  {\n},\n  [\n]\n],\n  \"c\": \"d\"\n}");
	nested(&out, &json_rows);
	check(&out, "{\n    \"a\": 1,\n    \"b\": [\n    -2,\n    {\n  },\n    [\n  ]\n  ],\n"
		    "    \"c\": \"d\"\n  }");
	nested(&out, &json_lines);
	check(&out, "{\n\"a\": 1,\n\"b\": [\n-2,\n{},\n[]],\n\"c\": \"d\"}");
	buf__done(&out);
}

/* A style of one's own, with the longest piece there may be. */
static void test_own_style(void **state)
{
	static const struct json_style wide = JSON_STYLE("\n      ", ",\n      ", " : ", "\n     ");
	struct buf out = {0};

	nested(&out, &wide);
	check(&out, "{\n      \"a\" : 1,\n      \"b\" : [\n      -2,\n      {\n     },\n      [\n"
		    "     ]\n     ],\n      \"c\" : \"d\"\n     }");
	buf__done(&out);
}

static void test_new_line(void **state)
{
	struct buf out = {0};
	struct json_writer j;

	json__init(&j, &out);
	json__object(&j, &json_spaced);
	json__new_line(&j, 2);
	json__put_u64(&j, "a", 1);
	json__put_u64(&j, "b", 2);
	json__new_line(&j, 0);
	json__put_array(&j, "c", &json_tight);
	json__new_line(&j, 255);
	json__u64(&j, 3);
	json__end(&j);
	json__new_line(&j, 1);
	json__end(&j);
	assert_int_equal(buf__error(&out), 0);
	assert_memory_equal(out.bytes, "{\n  \"a\": 1, \"b\": 2,\n\"c\": [\n   ", 30);
	assert_string_equal(out.bytes + out.nr - 9, "    3]\n }");
	assert_int_equal(out.nr, strlen("{\n  \"a\": 1, \"b\": 2,\n\"c\": [\n") + 255 + 5);
	buf__done(&out);
}

static void test_values(void **state)
{
	struct buf out = {0};
	struct json_writer j;

	json__init(&j, &out);
	json__array(&j, &json_tight);
	json__u64(&j, UINT64_MAX);
	json__i64(&j, INT64_MIN);
	json__us(&j, 1234567);
	json__us(&j, -1);
	json__us(&j, INT64_MIN);
	json__duration(&j, UINT64_MAX);
	json__fixed(&j, 0.5, 6);
	json__fixed(&j, 1e15, 0);
	json__rounded(&j, 1.0 / 3);
	json__rounded(&j, 0.00001);
	json__shortest(&j, 0.1);
	json__shortest(&j, 1.0 / 3);
	json__number_text(&j, "12.50");
	json__bool(&j, true);
	json__bool(&j, false);
	json__null(&j);
	json__printf(&j, "0x%x", 255);
	json__word(&j, "");
	json__begin_word(&j);
	buf__str(&out, "a");
	buf__u64(&out, 1);
	json__end_word(&j);
	json__end(&j);
	check(&out, "[18446744073709551615,-9223372036854775808,1234.567,-0.001,"
		    "-9223372036854775.808,9223372036854775.807,0.500000,1000000000000000,"
		    "0.333333,1e-05,0.1,0.3333333333333333,12.50,"
		    "true,false,null,\"0xff\",\"\",\"a1\"]");
	buf__done(&out);
}

static void test_members(void **state)
{
	struct buf out = {0};
	struct json_writer j;

	json__init(&j, &out);
	json__object(&j, &json_tight);
	json__put_object(&j, "o", &json_spaced);
	json__put_text(&j, "t", "x");
	json__put_us(&j, "us", 1);
	json__put_duration(&j, "d", 2);
	json__end(&j);
	json__put_fixed(&j, "f", 1.25, 1);
	json__put_bool(&j, "y", true);
	json__put_null(&j, "n");
	json__put_i64(&j, "i", -1);
	json__end(&j);
	check(&out, "{\"o\":{\"t\": \"x\", \"us\": 0.001, \"d\": "
		    "0.002},\"f\":1.2,\"y\":true,\"n\":null,\"i\":-1}");
	buf__done(&out);
}

/* Texts and keys that a program chose. */
static void test_escapes(void **state)
{
	struct buf out = {0};
	struct json_writer j;

	json__init(&j, &out);
	json__object(&j, &json_spaced);
	json__key_text(&j, "a\"b");
	json__text(&j, "\\\n\u202e\xff");
	json__key_text(&j, "");
	json__text(&j, NULL);
	json__end(&j);
	check(&out, "{\"a\\\"b\": \"\\\\\\u000a\\u202e\\ufffd\", \"\": null}");
	buf__done(&out);
}

/* Draining the buffer between two calls changes nothing of what comes. */
static void test_drained(void **state)
{
	struct buf out = {0};
	struct json_writer j;

	json__init(&j, &out);
	json__array(&j, &json_tight);
	check(&out, "[");
	json__u64(&j, 1);
	check(&out, "1");
	json__object(&j, &json_tight);
	check(&out, ",{");
	json__key(&j, "k");
	check(&out, "\"k\":");
	json__text(&j, "v");
	check(&out, "\"v\"");
	json__end(&j);
	json__end(&j);
	check(&out, "}]");
	buf__done(&out);
}

/* After an allocation failure nothing is written, and brackets still match. */
static void test_no_memory(void **state)
{
	struct buf out = {.err = -12};
	struct json_writer j;

	nested(&out, &json_spaced);
	assert_int_equal(buf__error(&out), -12);
	assert_null(out.bytes);
	json__init(&j, &out);
	json__object(&j, &json_tight);
	json__key_text(&j, "k");
	json__printf(&j, "%d", 1);
	json__end(&j);
	assert_int_equal(j.depth, 0);
	assert_null(out.bytes);
	buf__done(&out);
}

/* Objects inside each other up to the bound, in a buffer that grows under them. */
static void test_depth(void **state)
{
	struct buf out = {0};
	struct json_writer j;

	json__init(&j, &out);
	for (int i = 0; i < JSON_DEPTH; i++)
		json__array(&j, &json_tight);
	for (int i = 0; i < 1000; i++)
		json__u64(&j, 7);
	for (int i = 0; i < JSON_DEPTH; i++)
		json__end(&j);
	assert_int_equal(buf__error(&out), 0);
	assert_int_equal(out.nr, 2 * JSON_DEPTH + 1000 + 999);
	for (int i = 0; i < JSON_DEPTH; i++) {
		assert_int_equal(out.bytes[i], '[');
		assert_int_equal(out.bytes[out.nr - 1 - (size_t)i], ']');
	}
	buf__done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_styles),	 cmocka_unit_test(test_own_style),
		cmocka_unit_test(test_new_line), cmocka_unit_test(test_values),
		cmocka_unit_test(test_members),	 cmocka_unit_test(test_escapes),
		cmocka_unit_test(test_drained),	 cmocka_unit_test(test_no_memory),
		cmocka_unit_test(test_depth),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
