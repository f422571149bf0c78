/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The same texts in each format of base/escape.h.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/escape.h"

typedef void (*escape_fn)(struct buf *b, const char *text);

/* In memory of its own size: a step behind its end is seen by a sanitizer. */
static void check(escape_fn fn, const char *text, const char *wanted)
{
	char *exact = strdup(text);
	struct buf b = {0};

	assert_non_null(exact);
	fn(&b, exact);
	assert_int_equal(buf__error(&b), 0);
	assert_string_equal(b.bytes ? b.bytes : "", wanted);
	buf__done(&b);
	free(exact);
}

static void test_csv(void **state)
{
	check(buf__csv, "", "");
	check(buf__csv, "aten::mm", "aten::mm");
	check(buf__csv, "a,b", "\"a,b\"");
	check(buf__csv, "a;b", "\"a;b\"");
	check(buf__csv, "say \"x\"", "\"say \"\"x\"\"\"");
	check(buf__csv, "=1+1", "'=1+1");
	check(buf__csv, "+1", "'+1");
	check(buf__csv, "-1", "'-1");
	check(buf__csv, "@SUM(A1,A2)", "\"'@SUM(A1,A2)\"");
	check(buf__csv, "  =1", "'  =1");
	check(buf__csv, "\uff1d1", "'\uff1d1");
	check(buf__csv, "\t=1", "?=1");
	check(buf__csv, "a\r\nb", "a??b");
	check(buf__csv, "1=1", "1=1");
	check(buf__csv, "\xc2\x9b\xff", "?\ufffd");
}

static void test_folded(void **state)
{
	check(buf__folded, "a b;c\td\ne 12", "a_b_c_d_e_12");
	check(buf__folded, "\x1b[2J\xc2\x9b\u202e\xff", "?[2J??\ufffd");
	check(buf__folded, "\u77e9\u9635", "\u77e9\u9635");
	check(buf__list_item, "a;b c\x1b;", "a_b c\x1b_");
	check(buf__list_item, "", "");
}

static void test_label(void **state)
{
	check(buf__label, "a\"b\\c\nd", "a\\\"b\\\\c?d");
	check(buf__label, "{x=\"1\"} 2", "{x=\\\"1\\\"} 2");
	check(buf__label, "\u200f\x80", "?\ufffd");
}

static void test_html(void **state)
{
	check(buf__html, "<b a='1' c=\"2\">&", "&#60;b a=&#39;1&#39; c=&#34;2&#34;&#62;&#38;");
	check(buf__html, "\u00e9\x1b\u2066\xc3", "\u00e9??\ufffd");
}

static void test_file_name(void **state)
{
	check(buf__file_name, "../a b/c\n\u202e", ".._a_b_c__");
	check(buf__file_name, "\u77e9.host\xff", "\u77e9.host\ufffd");
}

static void test_json(void **state)
{
	check(buf__json, "\x7f\xc2\x80\xc2\x9b\u061c", "\"\\u007f\\u0080\\u009b\\u061c\"");
	check(buf__json, "\u2028\u202e\u2069\ufff9", "\"\\u2028\\u202e\\u2069\\ufff9\"");
	check(buf__json, "\u200d\u00a0\ufffd<", "\"\u200d\u00a0\ufffd<\"");
	check(buf__json, "\xf0\x9f\xbf\xbe", "\"\\ud83f\\udffe\"");
}

static void check_page(const char *text, const char *wanted)
{
	struct buf json = {0}, page = {0};

	buf__json(&json, text);
	buf__page_json(&page, &json);
	assert_string_equal(page.bytes, wanted);
	buf__done(&json);
	buf__done(&page);
}

static void test_page(void **state)
{
	check_page("</script><!--", "\"\\u003c/script>\\u003c!--\"");
	check_page("a\x1b\u202e\u2028\u00e9", "\"a???\u00e9\"");
	check_page("\xff", "\"\\ufffd\"");
	/* Two surrogates are one character. */
	check_page("\xf0\x9f\xbf\xbe.", "\"?.\"");
	/* No escape, but its letters. */
	check_page("\\u202e\"\\", "\"\\\\u202e\\\"\\\\\"");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_csv),	  cmocka_unit_test(test_folded),
		cmocka_unit_test(test_label),	  cmocka_unit_test(test_html),
		cmocka_unit_test(test_file_name), cmocka_unit_test(test_json),
		cmocka_unit_test(test_page),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
