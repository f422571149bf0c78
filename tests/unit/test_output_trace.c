/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The Chrome trace and the table's JSON and CSV: golden files from the events of table_events.tsv
 * (renewed by --update), and what they do not show: flows, exceptions, hostile names and times.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "golden.h"
#include "output/format/output.h"

#define T (1ULL << 32)

/* The trace as terminated text; the caller frees. */
static char *trace_of(const struct timeline *t)
{
	struct sink *s = memory_sink();
	size_t bytes;
	char *text;

	assert_int_equal(output_chrome(s, t, "/tmp/a \"trace\".json"), 0);
	text = sink_text(s, &bytes);
	assert_int_equal(strlen(text), bytes);
	return text;
}

static const struct timeline *golden_timeline(struct events *e)
{
	events__meta(e, "gpuprof", "0.1.0");
	events__meta(e, "host", "machine");
	events__meta(e, "memory", "1");
	events__meta(e, "probe_hits", "200");
	events__meta(e, "probe_method", "uprobe_multi");
	events__meta(e, "probe_ns_per_hit", "500.5");
	events__window(e, 1000000, 11000000, 1763800000001000000ULL);
	events__loss(e, "ring_full", 2);
	events__thread(e, 100, "python");
	events__thread(e, 200, "pt_autograd_0");
	golden_events(e, "table_events.tsv");
	return events__timeline(e);
}

static void test_golden_trace(void **state)
{
	char *text = trace_of(golden_timeline(*state));

	golden_check("chrome.json", text, strlen(text));
	free(text);
}

static void test_golden_tables(void **state)
{
	struct table_options options = {.sort = "self_cpu_time_total", .by_overload = true};
	const struct timeline *t = golden_timeline(*state);
	struct table *table = table_of(t, options);
	struct sink *s;

	s = memory_sink();
	assert_int_equal(output_table_json(s, t, table, 12), 0);
	golden_check_sink("table.json", s);
	s = memory_sink();
	assert_int_equal(output_table_csv(s, table, -1), 0);
	golden_check_sink("table.csv", s);
	table__free(table);
}

static void add_op(struct events *e, const char *name, uint64_t instance, uint64_t parent,
		   uint64_t start_ns, uint64_t end_ns, int64_t sequence, uint64_t forward)
{
	events__op(e, (struct event_op){.name = name,
					.tid = forward ? 8 : 7,
					.start_ns = start_ns,
					.end_ns = end_ns,
					.instance = (forward ? 2 * T : T) + instance,
					.parent = parent ? (forward ? 2 * T : T) + parent : 0,
					.sequence_nr = sequence + 1,
					.forward_thread = forward,
					.thread_number = forward ? 2 : 1});
}

/* One arrow per sequence number: from the innermost forward op to the innermost backward one. */
static void test_flows(void **state)
{
	struct events *e = *state;
	char *text;

	add_op(e, "aten::linear", 1, 0, 1000, 2000, 5, 0);
	add_op(e, "aten::addmm", 2, 1, 1100, 1900, 5, 0);
	add_op(e, "aten::relu", 3, 0, 2100, 2200, 6, 0);
	add_op(e, "evaluate", 1, 0, 5000, 6000, 5, 1);
	add_op(e, "AddmmBackward0", 2, 1, 5100, 5900, 5, 1);
	/* Nobody's: no forward op of this number, or of this thread, or only a later one. */
	add_op(e, "evaluate", 3, 0, 7000, 7100, 9, 1);
	add_op(e, "evaluate", 4, 0, 7200, 7300, 6, 3);
	add_op(e, "early", 5, 0, 100, 200, 6, 1);
	text = trace_of(events__timeline(e));
	assert_int_equal(count_of(text, "\"ph\":\"s\""), 1);
	assert_int_equal(count_of(text, "\"ph\":\"f\",\"bp\":\"e\""), 1);
	assert_non_null(strstr(text,
			       "{\"ph\":\"s\",\"id\":2,\"cat\":\"fwdbwd\",\"name\":\"fwdbwd\","
			       "\"pid\":4242,\"tid\":7,\"ts\":1.100}"));
	assert_non_null(strstr(text, "\"id\":2,\"cat\":\"fwdbwd\",\"name\":\"fwdbwd\","
				     "\"pid\":4242,\"tid\":8,\"ts\":5.100}"));
	free(text);
}

static void test_what_is_special(void **state)
{
	struct events *e = *state;
	char *text;

	events__op(e, (struct event_op){.name = "raises",
					.start_ns = 10,
					.end_ns = 20,
					.flags = GP_OP_EXCEPTION});
	events__op(e, (struct event_op){
			      .name = "async", .start_ns = 5, .end_ns = 15, .flags = GP_OP_ASYNC});
	events__op(e, (struct event_op){
			      .name = "\"\\\n\x01\xff</script>", .start_ns = 30, .end_ns = 31});
	events__memory(
		e, (struct event_memory){.time_ns = 40, .bytes = 1 << 20, .flags = GP_MEMORY_OOM});
	text = trace_of(events__timeline(e));
	assert_int_equal(count_of(text, "\"finished\":\"false\""), 1);
	assert_int_equal(count_of(text, "{\"ph\":\"b\",\"cat\":\"cpu_op\",\"name\":\"async\""), 1);
	assert_int_equal(count_of(text, "{\"ph\":\"e\",\"cat\":\"cpu_op\",\"name\":\"async\""), 1);
	assert_non_null(strstr(text, "\"name\":\"\\\"\\\\\\u000a\\u0001\\ufffd</script>\""));
	assert_int_equal(count_of(text, "\"name\":\"[OutOfMemory]\""), 1);
	assert_non_null(strstr(text, "\"traceName\": \"/tmp/a \\\"trace\\\".json\"\n}\n"));
	/* The time of day is not known: times are CLOCK_MONOTONIC's. */
	assert_non_null(strstr(text, "\"baseTimeNanoseconds\": 0,"));
	assert_non_null(strstr(text, "\"ts\":0.030,\"dur\":0.001"));
	free(text);
}

/* Times that are bounds are said to be. */
static void test_bounded_calls(void **state)
{
	struct events *e = *state;
	struct sink *s = memory_sink();
	const struct timeline *t;
	struct table *table;
	const char *text;
	size_t bytes;

	for (uint64_t i = 1; i <= 3; i++)
		events__op(e, (struct event_op){.name = "aten::mm",
						.start_ns = i * 100,
						.end_ns = i * 100 + 50,
						.instance = T + i,
						.flags = i > 1 ? GP_OP_EXCEPTION : 0});
	t = events__timeline(e);
	table = table_of(t, (struct table_options){0});
	assert_int_equal(output_table_json(s, t, table, -1), 0);
	text = sink__bytes(s, &bytes);
	assert_non_null(memmem(text, bytes, "\"calls\": 3, \"bounded_calls\": 2,", 31));
	table__free(table);
	sink__free(s);
}

/* No time is negative, whatever the window says. */
static void test_hostile_times(void **state)
{
	static const uint64_t times[] = {0, 1, 999, (1ULL << 62) - 1};
	struct events *e = *state;
	char *text;

	events__window(e, (1ULL << 62) - 5, (1ULL << 62) - 2, (1ULL << 62) - 1);
	for (size_t i = 0; i < 4; i++)
		events__op(e, (struct event_op){.name = "f",
						.tid = (uint32_t)i + 1,
						.start_ns = times[i],
						.end_ns = times[3]});
	text = trace_of(events__timeline(e));
	assert_int_equal(count_of(text, "\"ts\":-"), 0);
	assert_int_equal(count_of(text, "\"dur\":-"), 0);
	assert_int_equal(count_of(text, "\"ph\":\"X\""), 4);
	free(text);
}

/* A writer whose sink fails says so, and stops. */
static void test_failing_sink(void **state)
{
	struct sink *s = NULL;

	assert_int_equal(sink__new_fd(-1, &s), 0);
	if (!output_chrome(s, golden_timeline(*state), "x"))
		assert_true(sink__finish(s) < 0);
	sink__free(s);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, events_setup, events_teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		CASE(test_golden_trace),    CASE(test_golden_tables), CASE(test_flows),
		CASE(test_what_is_special), CASE(test_hostile_times), CASE(test_bounded_calls),
		CASE(test_failing_sink),
	};

	golden_init(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
