/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Columns that share a width: what is cut, what is left out, and in which order.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "output/format/text_cells.h"
#include "output/format/text_columns.h"

#define NR 4

/* A name of 50 that can be cut to 30, and three numbers: 10 each, with gaps 36. */
static void fill(struct text_column columns[NR])
{
	columns[0] = (struct text_column){.width = 50, .least = 30};
	columns[1] = (struct text_column){.width = 10, .rank = 1};
	columns[2] = (struct text_column){.width = 10, .rank = 2};
	columns[3] = (struct text_column){.width = 10, .rank = 2};
}

static size_t width_of(const struct text_column columns[NR])
{
	size_t width = 0;

	for (size_t i = 0; i < NR; i++)
		if (!columns[i].left_out)
			width += columns[i].width + (width ? TEXT_COLUMN_GAP : 0);
	return width;
}

static size_t shown_nr(const struct text_column columns[NR])
{
	size_t nr = 0;

	for (size_t i = 0; i < NR; i++)
		nr += !columns[i].left_out;
	return nr;
}

static void what_fits_stays_as_it_is(void **state)
{
	struct text_column columns[NR], before[NR];

	(void)state;
	fill(columns);
	fill(before);
	text_columns_fit(columns, NR, 86);
	for (size_t i = 0; i < NR; i++) {
		assert_int_equal(columns[i].width, before[i].width);
		assert_int_equal(columns[i].left_out, before[i].left_out);
	}
}

static void names_are_cut_before_columns_go(void **state)
{
	struct text_column columns[NR];

	(void)state;
	for (size_t width = 66; width < 86; width++) {
		fill(columns);
		text_columns_fit(columns, NR, width);
		assert_int_equal(shown_nr(columns), NR);
		assert_int_equal(width_of(columns), width);
	}
}

/* And the room of those that went is the name's again. */
static void columns_of_a_rank_go_together(void **state)
{
	struct text_column columns[NR];

	(void)state;
	fill(columns);
	text_columns_fit(columns, NR, 65);
	assert_int_equal(shown_nr(columns), 2);
	assert_false(columns[1].left_out);
	assert_int_equal(columns[0].width, 50);
	fill(columns);
	text_columns_fit(columns, NR, 41);
	assert_int_equal(shown_nr(columns), 1);
	assert_int_equal(columns[0].width, 41);
}

static void narrow_terminals_cut_further(void **state)
{
	struct text_column columns[NR];

	(void)state;
	for (size_t width = 0; width < 30; width++) {
		fill(columns);
		text_columns_fit(columns, NR, width);
		assert_int_equal(shown_nr(columns), 1);
		assert_int_equal(columns[0].width, width < 8 ? 8 : width);
	}
}

static void assert_middle(const char *text, size_t width, const char *expected)
{
	struct buf b = {0};

	text_middle(&b, text, width);
	assert_string_equal(b.bytes ? b.bytes : "", expected);
	assert_true(line_characters(expected) <= width);
	buf__done(&b);
}

static void texts_are_cut_in_the_middle(void **state)
{
	(void)state;
	assert_middle("aten::convolution", 17, "aten::convolution");
	assert_middle("aten::convolution", 16, "aten::c...lution");
	assert_middle("aten::convolution", 8, "ate...on");
	assert_middle("aten::convolution", 3, "atn");
	assert_middle("aten::convolution", 0, "");
	assert_middle("\xc3\xa4\xc3\xb6\xc3\xbc\xc3\x9f\xc3\xa4\xc3\xb6\xc3\xbc", 5,
		      "\xc3\xa4...\xc3\xbc");
	assert_middle("\x1b[2Jaaaaaaaaaaaaaaa", 9, "?[2...aaa");
}

static void assert_wrapped(const char *text, size_t width, const char *expected)
{
	struct buf b = {0};

	text_wrapped(&b, text, width);
	assert_string_equal(b.bytes, expected);
	buf__done(&b);
}

static void lines_break_at_spaces(void **state)
{
	(void)state;
	assert_wrapped("one two three", 13, "one two three\n");
	assert_wrapped("one two three", 12, "one two\n  three\n");
	assert_wrapped("one two three", 7, "one two\n  three\n");
	assert_wrapped("one two three", 1, "one\n  two\n  three\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_fits_stays_as_it_is),
		cmocka_unit_test(names_are_cut_before_columns_go),
		cmocka_unit_test(columns_of_a_rank_go_together),
		cmocka_unit_test(narrow_terminals_cut_further),
		cmocka_unit_test(texts_are_cut_in_the_middle),
		cmocka_unit_test(lines_break_at_spaces),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
