/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The table against PyTorch's own: the same events through a recording, a timeline and a table
 * give the same bytes. tests/golden/make_table.py makes the golden files.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "golden.h"
#include "output/format/output.h"

struct options {
	struct table_options table;
	struct output_table_options text;
	bool no_memory;
};

/* Of a line "### key=value key=value"; changes it. */
static struct options parse(char *line)
{
	struct options o = {.text.limit = 100};
	char *word;

	while ((word = strsep(&line, " "))) {
		char *value = strchr(word, '=');

		if (!value)
			continue;
		*value++ = '\0';
		if (!strcmp(word, "limit"))
			o.text.limit = atol(value);
		else if (!strcmp(word, "sort"))
			o.table.sort = value;
		else if (!strcmp(word, "unit"))
			o.text.time_unit = value;
		else if (!strcmp(word, "header"))
			o.text.header = value;
		else if (!strcmp(word, "width"))
			o.text.max_name_width = atoi(value);
		else if (!strcmp(word, "top"))
			o.text.top_level = true;
		else if (!strcmp(word, "overload"))
			o.table.by_overload = true;
		else if (!strcmp(word, "stack"))
			o.table.by_stack = (uint32_t)atoi(value);
		else if (!strcmp(word, "memory"))
			o.no_memory = true;
		else
			fail_msg("unknown option '%s'", word);
	}
	return o;
}

static void print(struct sink *s, const struct timeline *t, const struct options *o)
{
	struct table *table = table_of(t, o->table);

	if (o->no_memory)
		table->has_memory = false;
	assert_int_equal(output_table_text(s, table, &o->text), 0);
	table__free(table);
}

/* Every section of the golden file is one case. */
static void check_cases(const char *list, const char *text, int least)
{
	char *golden = golden_read(text), *rest = golden, *line;
	struct events *e = events__new();
	const struct timeline *t;
	struct sink *s = NULL;
	int cases = 0;

	events__meta(e, "memory", "1");
	golden_events(e, list);
	t = events__timeline(e);
	assert_int_equal(sink__new_memory(&s), 0);
	while ((line = strsep(&rest, "\n"))) {
		struct options o;

		if (strncmp(line, "###", 3) != 0)
			continue;
		assert_int_equal(sink__write(s, line, strlen(line)), 0);
		assert_int_equal(sink__write(s, "\n", 1), 0);
		o = parse(line);
		print(s, t, &o);
		cases++;
	}
	assert_true(cases >= least);
	golden_check_sink(text, s);
	events__free(e);
	free(golden);
}

static void test_torch_cases(void **state)
{
	check_cases("table_events.tsv", "table_text.txt", 22);
}

/* With API calls and GPU work. */
static void test_torch_gpu_cases(void **state)
{
	check_cases("table_gpu_events.tsv", "table_gpu_text.txt", 10);
}

/* With stacks, of forward and backward ops. */
static void test_torch_stack_cases(void **state)
{
	check_cases("table_stack_events.tsv", "table_stack_text.txt", 8);
}

static struct table_row row_of(char *line)
{
	struct table_row r = {.first_op = TL_NONE};
	long long n[11];

	r.name = strsep(&line, "\t");
	for (size_t i = 0; i < 11; i++) {
		char *text = strsep(&line, "\t");

		assert_non_null(text);
		n[i] = atoll(text);
	}
	r.device = n[0] ? TABLE_CUDA : TABLE_CPU;
	r.is_user_annotation = n[1];
	r.calls = (uint64_t)n[2];
	r.self_cpu_ns = (uint64_t)n[3];
	r.cpu_total_ns = (uint64_t)n[4];
	r.self_cuda_ns = (uint64_t)n[5];
	r.cuda_total_ns = (uint64_t)n[6];
	r.self_cpu_bytes = n[7];
	r.cpu_bytes = n[8];
	r.self_cuda_bytes = n[9];
	r.cuda_bytes = n[10];
	return r;
}

/* GPU columns, from rows. */
static void test_torch_cuda(void **state)
{
	char *golden = golden_read("table_cuda.tsv"), *rest = golden, *line;
	struct table table = {.has_memory = true, .has_cuda_time = true, .has_cuda_memory = true};
	struct output_table_options options = {.limit = 100};
	struct sink *s = NULL;

	while ((line = strsep(&rest, "\n"))) {
		struct table_row r;

		if (!*line)
			continue;
		r = row_of(line);
		table.self_cpu_total_ns += r.self_cpu_ns;
		if (r.device == TABLE_CUDA && !r.is_user_annotation)
			table.self_cuda_total_ns += r.self_cuda_ns;
		assert_int_equal(vec_push(&table.rows, r), 0);
	}
	assert_int_equal(sink__new_memory(&s), 0);
	assert_int_equal(output_table_text(s, &table, &options), 0);
	golden_check_sink("table_cuda.txt", s);
	vec_done(&table.rows);
	free(golden);
}

/* Nothing recorded: nothing printed. */
static void test_empty(void **state)
{
	struct table table = {0};
	struct output_table_options options = {.limit = 100};
	struct sink *s = NULL;
	size_t bytes;

	assert_int_equal(sink__new_memory(&s), 0);
	assert_int_equal(output_table_text(s, &table, &options), 0);
	assert_int_equal(sink__finish(s), 0);
	(void)sink__bytes(s, &bytes);
	assert_int_equal(bytes, 0);
	sink__free(s);
}

/* A name that would move the cursor, and one that is not UTF-8. */
static void test_hostile_names(void **state)
{
	struct table_row rows[] = {
		{.name = "\x1b[2J\x9b\xc2\x9b", .calls = 1},
		{.name = "\xff\xc3(",
		 .calls = UINT64_MAX,
		 .cpu_total_ns = UINT64_MAX,
		 .self_cpu_bytes = INT64_MIN,
		 .cpu_bytes = INT64_MAX},
		{.name = "", .calls = 0},
	};
	struct table table = {.rows = {.items = rows, .nr = 3, .cap = 3}, .has_memory = true};
	struct output_table_options options = {.limit = -1};
	struct sink *s = NULL;
	const char *text;
	size_t bytes;

	assert_int_equal(sink__new_memory(&s), 0);
	assert_int_equal(output_table_text(s, &table, &options), 0);
	assert_int_equal(sink__finish(s), 0);
	text = sink__bytes(s, &bytes);
	assert_non_null(strstr(text, " ?[2J\ufffd?  "));
	assert_non_null(strstr(text, " \ufffd\ufffd(  "));
	assert_non_null(strstr(text, " NaN  "));
	for (size_t i = 0; i < bytes; i++)
		assert_true((unsigned char)text[i] >= 0x80 || text[i] == '\n' ||
			    (text[i] >= ' ' && text[i] < 0x7f));
	sink__free(s);
}

/* The order in which columns are left out, as output.h and --help state it. */
static const char *const goes_first[] = {
	"CPU time avg", "CUDA time avg", "CPU total %",	 "Self CUDA %",	 "GFLOP/s",
	"All FLOPs",	"CPU Mem",	 "CUDA Mem",	 "est Calls",	 "Self CPU %",
	"est SelfCUDA", "CUDA total",	 "CPU total",	 "Self CPU Mem", "Self CUDA Mem",
	"Total FLOPs",	"# of Calls",	 "est Self CPU",
};

#define GOES_NR (sizeof(goes_first) / sizeof(*goes_first))

/* A table with every column that there is. */
static void fill_full(struct table *table, struct table_row rows[2])
{
	rows[0] = (struct table_row){.name = "aten::convolution_backward_with_a_name_that_is_long",
				     .shapes = "[[64, 3, 7, 7], [64, 3, 7, 7], [64, 3, 7, 7], []]",
				     .overload = "out",
				     .calls = 7,
				     .flops = 3,
				     .all_flops = 4};
	rows[1] = (struct table_row){.name = "aten::mm", .calls = 1};
	*table = (struct table){.rows = {.items = rows, .nr = 2, .cap = 2},
				.has_memory = true,
				.has_cuda_time = true,
				.has_cuda_memory = true,
				.has_estimates = true,
				.has_flops = true,
				.least_flops = 3,
				.least_all_flops = 4,
				.parts = TABLE_BY_RANK};
}

static char *fitted(const struct table *table, size_t columns, const char *sort)
{
	struct output_table_options options = {
		.limit = -1, .columns = columns, .sort = sort, .hints = true};
	struct sink *s = NULL;
	char *text;

	assert_int_equal(sink__new_memory(&s), 0);
	assert_int_equal(output_table_text(s, table, &options), 0);
	assert_int_equal(sink__finish(s), 0);
	text = strdup(sink__bytes(s, NULL));
	assert_non_null(text);
	sink__free(s);
	return text;
}

/* The line of titles: the one between the first two lines of dashes. */
static const char *titles_of(char *text)
{
	char *titles = strchr(strstr(text, "---"), '\n') + 1;

	*strchr(titles, '\n') = '\0';
	return titles;
}

static bool has_title(const char *titles, const char *title)
{
	const char *at = titles;

	for (; (at = strstr(at, title)); at++) {
		const char *end = at + strlen(title);

		if ((at - titles < 2 || !strncmp(at - 2, "  ", 2)) && (!*end || *end == ' ') &&
		    (!*end || end[1] == ' ' || !end[1]))
			return true;
	}
	return false;
}

static void columns_are_left_out_in_order(void **state)
{
	struct table_row rows[2];
	struct table table;
	size_t gone = 0;

	fill_full(&table, rows);
	for (size_t columns = 400; columns > 20; columns--) {
		char *text = fitted(&table, columns, NULL);
		const char *titles = titles_of(text);
		size_t left = 0;

		while (left < GOES_NR && !has_title(titles, goes_first[left]))
			left++;
		for (size_t i = left; i < GOES_NR; i++)
			assert_true(has_title(titles, goes_first[i]));
		assert_true(left >= gone && left <= gone + 1);
		assert_true(has_title(titles, "Self CPU") && has_title(titles, "Self CUDA"));
		assert_true(has_title(titles, "Rank"));
		assert_true(has_title(titles, "Input Shapes") || columns < 110);
		gone = left;
		free(text);
	}
	assert_int_equal(gone, GOES_NR);
}

/* Whatever the table is grouped by: but for lines above the first dashes, which terminals wrap. */
static void every_line_fits(void **state)
{
	struct table_row rows[2];
	struct table table;

	fill_full(&table, rows);
	for (int kind = 0; kind < 2; kind++) {
		table.is_tree = kind == 1;
		rows[1].depth = 3;
		for (size_t columns = 90; columns < 400; columns += 7) {
			char *text = fitted(&table, columns, NULL), *line = strstr(text, "---");

			while (line && *line) {
				size_t nr = strcspn(line, "\n");

				assert_true(nr <= columns);
				line += nr + 1;
			}
			free(text);
		}
	}
}

static void the_sorting_column_stays(void **state)
{
	static const struct {
		const char *key, *title;
	} sorts[] = {{"cpu_time", "CPU time avg"},
		     {"cuda_time", "CUDA time avg"},
		     {"device_time", "CUDA time avg"},
		     {"cpu_time_total", "CPU total"},
		     {"cuda_time_total", "CUDA total"},
		     {"cpu_memory_usage", "CPU Mem"},
		     {"cuda_memory_usage", "CUDA Mem"},
		     {"self_cpu_memory_usage", "Self CPU Mem"},
		     {"self_cuda_memory_usage", "Self CUDA Mem"},
		     {"count", "# of Calls"},
		     {"flops", "Total FLOPs"},
		     {"all_flops", "All FLOPs"}};
	struct table_row rows[2];
	struct table table;

	fill_full(&table, rows);
	for (size_t i = 0; i < sizeof(sorts) / sizeof(*sorts); i++) {
		char *text = fitted(&table, 60, sorts[i].key);

		assert_true(has_title(titles_of(text), sorts[i].title));
		free(text);
	}
}

/* What fits is shown whole, without a word about it. */
static void hints_are_of_what_is_left_out(void **state)
{
	struct table_row rows[2];
	struct table table;
	char *text;

	fill_full(&table, rows);
	text = fitted(&table, 400, NULL);
	assert_null(strstr(text, "left out"));
	assert_null(strstr(text, "shows all"));
	free(text);
	text = fitted(&table, 180, NULL);
	assert_non_null(strstr(text, "left out to fit: Self CPU %, CPU total %, CPU total, "));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_torch_cases),
		cmocka_unit_test(test_torch_gpu_cases),
		cmocka_unit_test(test_torch_stack_cases),
		cmocka_unit_test(test_torch_cuda),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_hostile_names),
		cmocka_unit_test(columns_are_left_out_in_order),
		cmocka_unit_test(every_line_fits),
		cmocka_unit_test(the_sorting_column_stays),
		cmocka_unit_test(hints_are_of_what_is_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
