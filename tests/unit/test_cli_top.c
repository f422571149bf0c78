/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What `top` puts where: numbers in few characters, columns that give way, the order of rows.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/top/top_units.h"
#include "cli/top/top_view.h"

static void numbers_are_short(void **state)
{
	static const struct {
		void (*put)(char *to, size_t bytes, double n);
		double n;
		const char *text;
	} cases[] = {
		{top_time, 0, "0"},
		{top_time, 999.4, "999ns"},
		{top_time, 999.6, "1.00us"},
		{top_time, 9996, "10.0us"},
		{top_time, 999.4e3, "999us"},
		{top_time, 999.6e3, "1.00ms"},
		{top_time, 1.95e9, "1.95s"},
		{top_time, 999.6e9, "16.7min"},
		{top_time, 1e14, "27.8h"},
		{top_bytes, 0, "0"},
		{top_bytes, 1023, "1023B"},
		{top_bytes, 1024, "1.00KB"},
		{top_bytes, 1023.7 * 1024, "1.00MB"},
		{top_bytes, 1.5 * (1ULL << 40), "1.50TB"},
		{top_count, 7, "7"},
		{top_count, 2.5, "2.5"},
		{top_count, 999.7, "1,000"},
		{top_count, 999999, "999,999"},
		{top_count, 999999.6, "1.00M"},
		{top_count, 2.5e9, "2.50G"},
		{top_percent, 99.96, "100"},
		{top_percent, 3.14159, "3.1"},
		{top_uptime, 42, "42s"},
		{top_uptime, 3725, "1h02m"},
		{top_uptime, 90061, "1d01h"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[32];

		cases[i].put(text, sizeof(text), cases[i].n);
		assert_string_equal(text, cases[i].text);
		assert_true(strlen(text) <= 8);
	}
}

static void assert_bar(double part, bool ascii, const char *text)
{
	struct buf b = {0};

	top_bar(&b, part, 100, 4, ascii);
	assert_string_equal(b.bytes, text);
	buf__done(&b);
}

static void bars(void **state)
{
	const double curve[] = {-1, 0, 50, 100, 1000};
	struct buf b = {0};

	assert_bar(0, true, "----");
	assert_bar(50, true, "##--");
	assert_bar(1000, true, "####");
	assert_bar(50, false, "\u2588\u2588  ");
	assert_bar(34, false, "\u2588\u258d  ");
	assert_bar(100, false, "\u2588\u2588\u2588\u2588");
	top_curve(&b, curve, 5, false);
	assert_string_equal(b.bytes, "\u2581\u2581\u2585\u2588\u2588");
	buf__done(&b);
}

/* Whatever the width, a name keeps room until only what cannot give way is left. */
static void columns_give_way(void **state)
{
	for (int i = 0; i < 2 * TOTALS_VIEWS; i++) {
		struct top_view v;
		uint32_t before = UINT32_MAX;

		top_view__init(&v, i % 2);
		v.view = (enum totals_view)(i / 2);
		for (int width = 200; width > 10; width--) {
			uint32_t shown = top_columns_shown(&v, true, width);
			struct buf titles = {0};

			assert_int_equal(shown & ~before, 0);
			assert_true(shown & 1);
			top_put_titles(&titles, &v, shown);
			if (width >= 80)
				assert_true(strlen(titles.bytes) + 20 < (size_t)width);
			buf__done(&titles);
			before = shown;
		}
		assert_int_equal(top_columns_shown(&v, true, 0),
				 (1U << top_view_info(&v, v.view)->columns_nr) - 1);
	}
}

/* What samples and operators are shown by, where there is no GPU. */
static void columns_without_gpu(void **state)
{
	struct top_view v;

	top_view__init(&v, false);
	assert_int_equal(top_columns_shown(&v, false, 0), 0x1f);
	assert_non_null(top_column_find(&v, "calls"));
	assert_null(top_column_find(&v, "samples"));
	top_view__init(&v, true);
	assert_int_equal(top_columns_shown(&v, false, 0), 0x1f);
	assert_null(top_column_find(&v, "calls"));
	assert_ptr_equal(top_column_find(&v, "self_pct"), v.sort[TOTALS_OPS]);
	assert_string_equal(top_column_find(&v, "off")->title, "~OFF CPU");
}

static struct live_totals *small(void)
{
	static const struct totals_row rows[] = {
		{.name = "aten::b", .values = {{4, 500, 600}}},
		{.name = "aten::a", .values = {{1, 500, 900}}},
		{.name = "other", .values = {{9, 100, 100}}},
		{.name = "was there", .values = {{0}, {5, 5, 5}}},
	};
	struct live_totals *y = live_totals__new();

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(vec_push(&y->rows[TOTALS_OPS], rows[i]), 0);
	return y;
}

static void assert_order(const struct live_totals *y, const struct top_view *v, const char *names)
{
	struct top_rows rows = {0};
	struct buf b = {0};

	assert_int_equal(top_rows__fill(&rows, v, y), 0);
	for (size_t i = 0; i < rows.list.nr; i++)
		buf__printf(&b, "%s;", rows.list.items[i]->name);
	assert_string_equal(b.bytes ? b.bytes : "", names);
	vec_done(&rows.list);
	buf__done(&b);
}

static void rows_in_order(void **state)
{
	struct live_totals *y = small();
	struct top_view v;

	top_view__init(&v, false);
	assert_order(y, &v, "aten::a;aten::b;other;");
	v.sort[TOTALS_OPS] = top_column_find(&v, "calls");
	assert_order(y, &v, "other;aten::b;aten::a;");
	v.reverse[TOTALS_OPS] = true;
	assert_order(y, &v, "aten::a;aten::b;other;");
	v.sort[TOTALS_OPS] = top_column_find(&v, "avg");
	assert_order(y, &v, "other;aten::b;aten::a;");
	(void)snprintf(v.filter, sizeof(v.filter), "%s", "ATEN");
	assert_order(y, &v, "aten::b;aten::a;");
	(void)snprintf(v.filter, sizeof(v.filter), "%s", "none");
	assert_order(y, &v, "");
	v.filter[0] = '\0';
	v.span = TOTALS_SUM;
	assert_order(y, &v, "was there;");
	assert_null(top_column_find(&v, "beauty"));
	live_totals__free(y);
}

static void cells_and_shares(void **state)
{
	struct live_totals *y = small();
	struct top_rows rows = {0};
	struct top_view v;
	struct buf b = {0};

	top_view__init(&v, false);
	/* Shares are of all, also of what a filter leaves out. */
	(void)snprintf(v.filter, sizeof(v.filter), "%s", "other");
	assert_int_equal(top_rows__fill(&rows, &v, y), 0);
	assert_int_equal(rows.list.nr, 1);
	top_put_cells(&b, &v, 0x1f, rows.list.items[0], &rows, 1000);
	assert_string_equal(b.bytes, "   9.1    100ns    100ns     11ns        9 ");
	buf__clear(&b);
	top_put_titles(&b, &v, 0x1f);
	assert_string_equal(b.bytes, "\u25beSELF%     SELF    TOTAL      AVG    CALLS ");
	vec_done(&rows.list);
	buf__done(&b);
	live_totals__free(y);
}

static void long_names_of_lines(void **state)
{
	const struct totals_row row = {.name = "/usr/lib/python3/torch/nn/conv.py:4 a/b"};
	struct top_view v;
	struct buf b = {0};

	top_view__init(&v, false);
	v.view = TOTALS_LINES;
	top_put_name(&b, &v, &row, 100);
	assert_string_equal(b.bytes, row.name);
	buf__clear(&b);
	top_put_name(&b, &v, &row, 26);
	assert_string_equal(b.bytes, "\u2026/torch/nn/conv.py:4 a/b");
	buf__clear(&b);
	v.ascii = true;
	top_put_name(&b, &v, &row, 1);
	assert_string_equal(b.bytes, ".../conv.py:4 a/b");
	buf__done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_short),   cmocka_unit_test(bars),
		cmocka_unit_test(columns_give_way),    cmocka_unit_test(columns_without_gpu),
		cmocka_unit_test(rows_in_order),       cmocka_unit_test(cells_and_shares),
		cmocka_unit_test(long_names_of_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
