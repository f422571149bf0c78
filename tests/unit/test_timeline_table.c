/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Rows of the table, as numbers. That they are torch.profiler's is test_output_table_text.c's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "events.h"
#include "outputs.h"

#define T (1ULL << 32)

static void add(struct events *e, const char *name, uint64_t start_ns, uint64_t end_ns,
		uint64_t instance, uint64_t parent)
{
	events__op(e, (struct event_op){.name = name,
					.start_ns = start_ns,
					.end_ns = end_ns,
					.instance = T + instance,
					.parent = parent ? T + parent : 0});
}

/* Collapsed and unlisted ops give what is their own to who stands above; one without anybody above
 * leaves the table, its memory becomes [memory]. */
static void test_left_out(void **state)
{
	struct events *e = *state;
	const struct table_row *rows;
	struct table *table;

	add(e, "f", 100, 200, 1, 0);
	add(e, "f", 110, 190, 2, 1);
	add(e, "aten::is_leaf", 120, 130, 3, 2);
	add(e, "g", 122, 127, 4, 3);
	add(e, "aten::is_leaf", 300, 350, 5, 0);
	events__memory(e, (struct event_memory){
				  .time_ns = 121, .instance = T + 3, .address = 1, .bytes = 10});
	events__memory(e, (struct event_memory){
				  .time_ns = 123, .instance = T + 4, .address = 2, .bytes = 5});
	events__memory(e, (struct event_memory){
				  .time_ns = 310, .instance = T + 5, .address = 3, .bytes = 7});
	events__memory(e, (struct event_memory){.time_ns = 90, .address = 4, .bytes = 1});
	table = table_of(events__timeline(e), (struct table_options){0});
	rows = table->rows.items;
	assert_int_equal(table->rows.nr, 3);
	assert_string_equal(rows[0].name, "[memory]");
	assert_int_equal(rows[0].calls, 2);
	assert_int_equal(rows[0].cpu_bytes, 8);
	assert_int_equal(rows[0].self_cpu_bytes, 8);
	assert_int_equal(rows[0].first_op, TL_NONE);
	assert_string_equal(rows[1].name, "f");
	assert_int_equal(rows[1].calls, 1);
	assert_int_equal(rows[1].cpu_total_ns, 100);
	assert_int_equal(rows[1].self_cpu_ns, 95);
	assert_int_equal(rows[1].cpu_bytes, 15);
	assert_int_equal(rows[1].self_cpu_bytes, 10);
	assert_string_equal(rows[2].name, "g");
	assert_true(rows[2].has_parent);
	assert_int_equal(table->self_cpu_total_ns, 100);
	assert_true(table->has_memory);
	table__free(table);
}

/* Annotation or op, this overload or that: rows of their own. Order is by first appearance over all
 * threads. */
static void test_keys(void **state)
{
	struct events *e = *state;
	const struct timeline *t;
	struct table *table;

	events__op(e, (struct event_op){.name = "f", .tid = 1, .start_ns = 500, .end_ns = 600});
	events__op(e, (struct event_op){
			      .name = "f", .tid = 2, .start_ns = 400, .end_ns = 450, .scope = 7});
	events__op(
		e,
		(struct event_op){
			.name = "f", .overload = "out", .tid = 3, .start_ns = 300, .end_ns = 310});
	events__op(e, (struct event_op){.name = "ProfilerStep#1", .tid = 4, .end_ns = 5});
	events__op(e, (struct event_op){
			      .name = "ProfilerStep#22", .tid = 4, .start_ns = 5, .end_ns = 6});
	t = events__timeline(e);
	table = table_of(t, (struct table_options){0});
	assert_int_equal(table->rows.nr, 3);
	assert_string_equal(table->rows.items[0].name, "ProfilerStep*");
	assert_int_equal(table->rows.items[0].calls, 2);
	assert_int_equal(table->rows.items[1].calls, 2);
	assert_int_equal(table->rows.items[1].self_cpu_ns, 110);
	assert_true(table->rows.items[2].is_user_annotation);
	assert_false(table->has_memory);
	table__free(table);
	table = table_of(
		t, (struct table_options){.by_overload = true, .sort = "self_cpu_time_total"});
	assert_int_equal(table->rows.nr, 4);
	assert_int_equal(table->rows.items[0].self_cpu_ns, 100);
	assert_string_equal(table->rows.items[0].overload, "");
	assert_string_equal(table->rows.items[2].overload, "out");
	table__free(table);
}

static void test_top_level(void **state)
{
	struct events *e = *state;
	struct table *table;

	add(e, "f", 100, 200, 1, 0);
	add(e, "a_long_name", 110, 190, 2, 1);
	add(e, "a_long_name", 300, 310, 3, 0);
	add(e, "g", 400, 500, 4, 0);
	table = table_of(events__timeline(e), (struct table_options){.top_level = true});
	assert_int_equal(table->rows.nr, 2);
	assert_string_equal(table->rows.items[1].name, "g");
	assert_int_equal(table->self_cpu_total_ns, 210);
	assert_int_equal(table->longest_name, strlen("a_long_name"));
	table__free(table);
}

static void test_async(void **state)
{
	struct events *e = *state;
	struct table *table;

	events__op(e, (struct event_op){.name = "a",
					.start_ns = 100,
					.end_ns = 200,
					.instance = T + 1,
					.flags = GP_OP_ASYNC});
	events__memory(e, (struct event_memory){
				  .time_ns = 150, .instance = T + 1, .address = 1, .bytes = 7});
	table = table_of(events__timeline(e), (struct table_options){0});
	assert_true(table->rows.items[0].is_async);
	assert_int_equal(table->rows.items[0].self_cpu_ns, 0);
	assert_int_equal(table->rows.items[0].cpu_total_ns, 100);
	assert_int_equal(table->rows.items[0].self_cpu_bytes, 0);
	assert_int_equal(table->rows.items[0].cpu_bytes, 7);
	table__free(table);
}

static void test_sort_keys(void **state)
{
	struct table_options options = {.sort = "colour"};
	struct table *table = NULL;
	struct reason why = {0};

	for (size_t i = 0; table_sort_keys[i]; i++)
		assert_true(table_sort_key_known(table_sort_keys[i]));
	assert_true(table_sort_key_known("device_time_total"));
	assert_true(table_sort_key_known("self_device_memory_usage"));
	assert_false(table_sort_key_known(""));
	assert_false(table_sort_key_known("cpu"));
	assert_false(table_sort_key_known("device"));
	assert_false(table_sort_key_known("cpu_time_total_"));
	assert_int_equal(table__new(events__timeline(*state), &options, &why, &table), -EINVAL);
	assert_null(table);
	assert_non_null(strstr(why.text, "'colour'"));
	assert_non_null(strstr(why.text, "self_cuda_memory_usage"));
}

static void reported_by_callback(struct events *e, const char *name, uint64_t start_ns,
				 uint64_t end_ns, uint64_t instance, uint64_t parent)
{
	events__op(e, (struct event_op){.name = name,
					.start_ns = start_ns,
					.end_ns = end_ns,
					.instance = T + instance,
					.parent = parent ? T + parent : 0,
					.flags = GP_OP_CALLBACK});
}

static void check_times(const struct table_row *row, const char *name, uint64_t self_ns,
			uint64_t total_ns)
{
	assert_string_equal(row->name, name);
	assert_int_equal(row->self_cpu_ns, self_ns);
	assert_int_equal(row->cpu_total_ns, total_ns);
}

/* Both callbacks of an op are in the time of the one around it, and of all around that; an op that
 * came by probe had none. Where they took more than there was, in the sum over a row, nothing is
 * left. */
static void test_compensated(void **state)
{
	struct events *e = *state;
	const struct timeline *t;
	struct table *table;

	events__meta(e, "callback_ns", "5");
	events__meta(e, "callback_timed", "100");
	reported_by_callback(e, "f", 100, 200, 1, 0);
	reported_by_callback(e, "g", 110, 150, 2, 1);
	add(e, "probed", 112, 120, 3, 2);
	reported_by_callback(e, "h", 130, 140, 4, 2);
	reported_by_callback(e, "short", 300, 308, 5, 0);
	reported_by_callback(e, "h", 301, 307, 6, 5);
	reported_by_callback(e, "short", 400, 403, 7, 0);
	t = events__timeline(e);
	table = table_of(t, (struct table_options){.compensate = true});
	assert_int_equal(table->rows.nr, 5);
	check_times(&table->rows.items[0], "f", 60 - 10, 100 - 20);
	check_times(&table->rows.items[1], "g", 22 - 10, 40 - 10);
	check_times(&table->rows.items[2], "probed", 8, 8);
	check_times(&table->rows.items[3], "h", 16, 16);
	check_times(&table->rows.items[4], "short", 0, 11 - 10);
	/* The same however they are grouped. */
	assert_int_equal(table->self_cpu_total_ns, 111 - 30);
	assert_int_equal(table->compensation.callback_ns, 5);
	assert_int_equal(table->compensation.timed_nr, 100);
	table__free(table);
	table = table_of(t, (struct table_options){.compensate = true, .by_module = true});
	assert_int_equal(table->rows.nr, 1);
	check_times(&table->rows.items[0], "[no module]", 111 - 30, 111 - 30);
	assert_int_equal(table->self_cpu_total_ns, 111 - 30);
	table__free(table);
	table = table_of(t, (struct table_options){0});
	check_times(&table->rows.items[0], "f", 60, 100);
	assert_int_equal(table->compensation.callback_ns, 0);
	table__free(table);
}

/* A step that was found is no event: nothing was called for it, only for what is in it. */
static void test_steps_cost_nothing(void **state)
{
	struct events *e = *state;
	struct compensation c;
	const struct timeline *t;

	events__meta(e, "callback_ns", "5");
	events__meta(e, "callback_timed", "100");
	reported_by_callback(e, "epoch", 100, 200, 1, 0);
	reported_by_callback(e, "ProfilerStep#0", 110, 150, 2, 1);
	reported_by_callback(e, "f", 120, 130, 3, 2);
	t = events__timeline(e);
	t->ops.items[1].step = true;
	assert_int_equal(compensation__find(t, NULL, &c), 0);
	assert_int_equal(compensation__self_ns(&c, t, 0), 60);
	assert_int_equal(compensation__total_ns(&c, t, 0), 90);
	assert_int_equal(compensation__self_ns(&c, t, 1), 20);
	assert_int_equal(compensation__total_ns(&c, t, 1), 30);
	compensation__done(&c);
	assert_int_equal(compensation__total_ns(&c, t, 0), 100);
}

/* With all that it calls more is taken off "outer" than it took: never less than it took itself. */
static void test_compensated_to_nothing(void **state)
{
	struct events *e = *state;
	struct table *table;

	events__meta(e, "callback_ns", "50");
	events__meta(e, "callback_timed", "100");
	reported_by_callback(e, "outer", 100, 300, 1, 0);
	reported_by_callback(e, "inner", 110, 190, 2, 1);
	reported_by_callback(e, "least", 120, 130, 3, 2);
	reported_by_callback(e, "least", 140, 150, 4, 2);
	table = table_of(events__timeline(e), (struct table_options){.compensate = true});
	check_times(&table->rows.items[0], "outer", 120 - 100, 120 - 100);
	check_times(&table->rows.items[1], "inner", 0, 0);
	check_times(&table->rows.items[2], "least", 20, 20);
	assert_int_equal(table->self_cpu_total_ns, 0);
	table__free(table);
}

/* What is told is no mean of these operators' callbacks, or no number, or of too few. */
static void test_not_compensated(void **state)
{
	static const struct {
		const char *ns, *nr, *key, *value, *why;
	} cases[] = {
		{"5", NULL, NULL, NULL, "older"},
		{NULL, "0", "callback_ops", "0", "probes"},
		{NULL, "0", "callback_ops", "7", "0 were timed, too few"},
		{"5", "99", NULL, NULL, "99 were timed, too few"},
		{NULL, "100", NULL, NULL, "no time"},
		{"0", "100", NULL, NULL, "no time"},
		{"20001", "100", NULL, NULL, "no time"},
		{"117, 242", "100", NULL, NULL, "no time"},
		{"10.9", "100", NULL, NULL, "no time"},
		{" 10", "100", NULL, NULL, "no time"},
		{"-10", "100", NULL, NULL, "no time"},
		{"1e3", "100", NULL, NULL, "no time"},
		{"5", "18446744073709551615", NULL, NULL, "no time"},
		{"5", "100", "merged", "2", "several"},
		{"5", "100", "steps", "1", "before its steps"},
		{"5", "100", "overhead_pct", "1", "windows of --overhead"},
	};
	struct table_options options = {.compensate = true};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct events *e = events__new();
		struct table *table = NULL;
		struct reason why = {0};

		if (cases[i].ns)
			events__meta(e, "callback_ns", cases[i].ns);
		if (cases[i].nr)
			events__meta(e, "callback_timed", cases[i].nr);
		if (cases[i].key)
			events__meta(e, cases[i].key, cases[i].value);
		reported_by_callback(e, "f", 100, 200, 1, 0);
		assert_int_equal(table__new(events__timeline(e), &options, &why, &table), -EINVAL);
		assert_null(table);
		assert_non_null(strstr(why.text, "does not tell what callbacks"));
		assert_non_null(strstr(why.text, cases[i].why));
		events__free(e);
	}
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, events_setup, events_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_left_out),	       CASE(test_keys),
		CASE(test_top_level),	       CASE(test_async),
		CASE(test_sort_keys),	       CASE(test_compensated),
		CASE(test_steps_cost_nothing), CASE(test_compensated_to_nothing),
		CASE(test_not_compensated),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
