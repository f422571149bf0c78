/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Python's garbage collections, from a recording to the outputs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "events.h"
#include "output/format/output.h"
#include "outputs.h"
#include "sample.h"

#include <stdlib.h>

#define MS 1000000ULL

static void put(struct recording_writer *w, uint64_t start_ns, uint64_t end_ns, int32_t generation,
		int64_t collected)
{
	struct gp_ev_python_gc ev = {
		.head = {.kind = GP_EV_PYTHON_GC, .tid = 5, .time_ns = end_ns},
		.start_ns = start_ns,
		.collected = collected,
		.generation = generation,
	};

	assert_int_equal(recording_writer__event(w, &ev, sizeof(ev)), 0);
}

/* `kind`: GP_EV_PAUSE or GP_EV_WINDOW, something that says that the rest was not seen; 0: nothing
 * does. */
static struct timeline *collections_of(uint8_t kind, struct recording **ret_recording)
{
	const struct gp_ev_pause pause = {
		.head = {.kind = GP_EV_PAUSE, .flags = 1, .time_ns = 8000 * MS},
		.start_ns = 7000 * MS,
	};
	const struct gp_ev_window window = {
		.head = {.kind = GP_EV_WINDOW, .time_ns = 6000 * MS},
		.start_ns = 1000 * MS,
	};

	const char *path = sample_path("g.gpuprof");
	struct recording_writer *w;
	struct timeline *t;

	assert_int_equal(recording_writer__new(path, NULL, &w), 0);
	assert_int_equal(recording_writer__window(w, 1000 * MS, 9000 * MS, 0), 0);
	put(w, 2000 * MS, 2003 * MS, 0, 7);
	put(w, 3000 * MS, 3010 * MS, 2, 100);
	/* What nobody could read counts among all. */
	put(w, 4000 * MS, 4001 * MS, -1, -1);
	/* It ends before it begins. */
	put(w, 5001 * MS, 5000 * MS, 1, 9);
	if (kind == GP_EV_PAUSE)
		assert_int_equal(recording_writer__event(w, &pause, sizeof(pause)), 0);
	if (kind == GP_EV_WINDOW) {
		assert_int_equal(recording_writer__meta(w, "overhead_pct", "1"), 0);
		assert_int_equal(recording_writer__event(w, &window, sizeof(window)), 0);
	}
	assert_int_equal(recording_writer__finish(w), 0);
	recording_writer__free(w);
	assert_int_equal(recording__open(path, NULL, ret_recording), 0);
	assert_int_equal(timeline__new(*ret_recording, NULL, &t), 0);
	return t;
}

static struct timeline *collections(struct recording **ret_recording)
{
	return collections_of(0, ret_recording);
}

static void expect_text(uint8_t kind, const char *expected)
{
	struct recording *r;
	struct timeline *t = collections_of(kind, &r);
	struct sink *sink = memory_sink();
	char *text;

	assert_int_equal(output_python_gc_text(sink, t), 0);
	text = sink_text(sink, NULL);
	assert_string_equal(text, expected);
	free(text);
	timeline__free(t);
	recording__free(r);
}

static void test_text(void **state)
{
	expect_text(0, "Python's garbage collector: 3 times, 14.000 ms in all, 10.000 ms the "
		       "longest\n");
	expect_text(GP_EV_PAUSE, "Python's garbage collector: 3 times, 14.000 ms in the time "
				 "outside pauses, 10.000 ms the longest\n");
	expect_text(GP_EV_WINDOW, "Python's garbage collector: 3 times, 14.000 ms in the windows, "
				  "10.000 ms the longest\n");
}

static void test_chrome(void **state)
{
	struct recording *r;
	struct timeline *t = collections(&r);
	struct sink *sink = memory_sink();
	char *text;

	assert_int_equal(output_chrome(sink, t, "t"), 0);
	text = sink_text(sink, NULL);
	assert_int_equal(count_of(text, "\"name\":\"Python GC\""), 3);
	assert_int_equal(count_of(text, "\"dur\":10000.000,\"args\":{\"Generation\":2,"
					"\"Collected\":100}"),
			 1);
	assert_int_equal(count_of(text, "{\"Generation\":-1,\"Collected\":-1}"), 1);
	free(text);
	timeline__free(t);
	recording__free(r);
}

/* What neither lies in an operator nor holds it is a pair of events, which need not nest. */
static void test_chrome_crossing(void **state)
{
	struct events *e = events__new();
	struct sink *sink = memory_sink();
	const struct gp_ev_python_gc gc = {
		.head = {.kind = GP_EV_PYTHON_GC, .tid = 100, .time_ns = 5 * MS},
		.start_ns = 2 * MS,
		.collected = 7,
	};
	char *text;

	events__op(e, (struct event_op){.name = "op",
					.instance = 1ULL << 32 | 1,
					.start_ns = 3 * MS,
					.end_ns = 6 * MS});
	events__raw(e, &gc, sizeof(gc));
	assert_int_equal(output_chrome(sink, events__timeline(e), "t"), 0);
	text = sink_text(sink, NULL);
	assert_int_equal(count_of(text, "\"name\":\"Python GC\""), 2);
	assert_int_equal(count_of(text, "\"ph\":\"b\",\"cat\":\"python_function\""), 1);
	assert_int_equal(count_of(text, ",\"ts\":2000.000,\"id\":1,\"args\":{\"Generation\":0,"
					"\"Collected\":7}}"),
			 1);
	assert_int_equal(count_of(text, "\"ph\":\"e\",\"cat\":\"python_function\""), 1);
	assert_int_equal(count_of(text, ",\"ts\":5000.000,\"id\":1}"), 1);
	free(text);
	events__free(e);
}

static void test_table(void **state)
{
	struct recording *r;
	struct timeline *t = collections(&r);
	struct table *table = table_of(t, (struct table_options){0});
	struct sink *sink = memory_sink();
	char *text;

	assert_int_equal(output_table_json(sink, t, table, -1), 0);
	text = sink_text(sink, NULL);
	assert_non_null(strstr(
		text, "\"python_gc\": {\"count\": 3, \"collected\": 107, \"sum_us\": 14000.000, "
		      "\"max_us\": 10000.000, \"in\": \"all\", \"generations\": [{\"generation\": "
		      "0, \"count\": 1, "
		      "\"collected\": 7, \"sum_us\": 3000.000, \"max_us\": 3000.000}, "
		      "{\"generation\": 2, \"count\": 1, \"collected\": 100, \"sum_us\": "
		      "10000.000, \"max_us\": 10000.000}]}"));
	free(text);
	table__free(table);
	timeline__free(t);
	recording__free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text), cmocka_unit_test(test_chrome),
		cmocka_unit_test(test_chrome_crossing), cmocka_unit_test(test_table)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
