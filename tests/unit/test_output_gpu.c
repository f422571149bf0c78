/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * GPU work in the Chrome trace and in the table's JSON and CSV: golden files (renewed by --update)
 * of a small capture with one of each kind, and what they do not show.
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

#define T (1ULL << 32)

/* The trace as terminated text; the caller frees. */
static char *trace_of(const struct timeline *t)
{
	struct sink *s = memory_sink();

	assert_int_equal(output_chrome(s, t, "trace.json"), 0);
	return sink_text(s, NULL);
}

static void add_op(struct events *e, const char *name, uint64_t instance, uint64_t parent,
		   uint64_t start_ns, uint64_t end_ns)
{
	events__op(e, (struct event_op){.name = name,
					.start_ns = start_ns,
					.end_ns = end_ns,
					.instance = T + instance,
					.parent = parent ? T + parent : 0});
}

static void add_call(struct events *e, const char *name, uint32_t correlation_id, uint64_t start_ns,
		     uint64_t end_ns)
{
	events__api(e, (struct event_api){.name = name,
					  .correlation_id = correlation_id,
					  .start_ns = start_ns,
					  .end_ns = end_ns,
					  .cbid = 211,
					  .driver = !strncmp(name, "cuL", 3),
					  .cupti = true});
}

static void add_calls(struct events *e)
{
	add_op(e, "aten::addmm", 2, 1, 1100000, 1200000);
	add_op(e, "aten::linear", 1, 0, 1050000, 1500000);
	add_op(e, "aten::copy_", 3, 0, 1600000, 1700000);
	add_call(e, "cudaLaunchKernel_v7000", 1, 1110000, 1120000);
	add_call(e, "cudaLaunchKernelExC_v11060", 2, 1130000, 1140500);
	add_call(e, "cuLaunchKernel", 3, 1300000, 1310000);
	add_call(e, "cudaGraphLaunch_v10000", 4, 1400000, 1410000);
	add_call(e, "cudaMemcpyAsync_v3020", 5, 1610000, 1620000);
	add_call(e, "cudaMemcpyPeerAsync_v4000", 6, 1630000, 1640000);
	add_call(e, "cudaMemsetAsync_v3020", 7, 1650000, 1655000);
	add_call(e, "cudaStreamSynchronize_v3020", 8, 1800000, 2500000);
	add_call(e, "cudaMalloc_v3020", 9, 2600000, 2650000);
	events__api(e, (struct event_api){.name = "cudaMallocHost",
					  .instance = 0,
					  .start_ns = 2700000,
					  .end_ns = 2750000});
}

#define WORK(id, on_device, on_stream, start, end, ...)                                            \
	{                                                                                          \
		.correlation_id = (id), .device = (on_device), .stream = (on_stream),              \
		.start_ns = (start), .end_ns = (end), __VA_ARGS__                                  \
	}

static void add_work(struct events *e)
{
	const struct event_gpu work[] = {
		WORK(1, 0, 7, 1150000, 1350000, .name = "_Z4gemmPKfS0_Pfi"),
		/* Overlaps by programmatic dependent launch. */
		WORK(2, 0, 7, 1340000, 1400000, .name = "_Z4biasPfPKfi"),
		/* Seems to begin before its launch. */
		WORK(3, 0, 13, 1299000, 1309000, .name = "triton_poi_fused_0"),
		WORK(4, 0, 7, 1420000, 1430000, .name = "node", .graph = 3, .graph_node = 71),
		WORK(4, 0, 7, 1431000, 1441000, .name = "node", .graph = 3, .graph_node = 72),
		WORK(5, 0, 7, 1700000, 1700300, .kind = TL_GPU_COPY, .bytes = 1000, .copy_kind = 2,
		     .src_kind = 3, .dst_kind = 2),
		WORK(6, 0, 7, 1710000, 1720000, .kind = TL_GPU_COPY, .bytes = 1 << 20,
		     .copy_kind = 10, .src_kind = 3, .dst_kind = 3),
		WORK(7, 0, 7, 1730000, 1730000, .kind = TL_GPU_SET, .bytes = 4096, .src_kind = 3),
		WORK(8, 0, 7, 1801000, 2499000, .kind = TL_GPU_SYNC, .what = 3),
		WORK(0, 0, TL_NONE, 1900000, 1950000, .kind = TL_GPU_SYNC, .what = 1),
		/* Its call was lost. */
		WORK(77, 1, 7, 2000000, 2100000, .name = "lost"),
	};

	for (size_t i = 0; i < sizeof(work) / sizeof(*work); i++)
		events__gpu(e, work[i]);
}

static const struct timeline *golden_timeline(struct events *e)
{
	struct gp_ev_clock clock = {
		.head = {.kind = GP_EV_CLOCK, .time_ns = 1000500}, .gpu_ns = 5, .width_ns = 320};

	events__meta(e, "gpuprof", "0.1.0");
	events__window(e, 1000000, 3000000, 1763800000001000000ULL);
	events__thread(e, 100, "python");
	add_calls(e);
	add_work(e);
	events__raw(e, &clock, sizeof(clock));
	clock.head.time_ns += 1000000000;
	clock.gpu_ns += 1000000250;
	clock.width_ns = 410;
	events__raw(e, &clock, sizeof(clock));
	return events__timeline(e);
}

static void test_golden_trace(void **state)
{
	char *text = trace_of(golden_timeline(*state));

	golden_check("chrome_gpu.json", text, strlen(text));
	free(text);
}

static void test_golden_tables(void **state)
{
	struct table_options options = {.sort = "cuda_time_total"};
	const struct timeline *t = golden_timeline(*state);
	struct table *table = table_of(t, options);
	struct sink *s;

	s = memory_sink();
	assert_int_equal(output_table_json(s, t, table, -1), 0);
	golden_check_sink("table_gpu.json", s);
	s = memory_sink();
	assert_int_equal(output_table_csv(s, table, -1), 0);
	golden_check_sink("table_gpu.csv", s);
	table__free(table);
}

/* Lines that Kineto wrote on a real machine, for the same events. */
static void test_kineto_lines(void **state)
{
	struct events *e = *state;
	char *text;

	events__gpu(e, (struct event_gpu){.start_ns = 4451267,
					  .end_ns = 4456227,
					  .stream = 7,
					  .correlation_id = 57609,
					  .kind = TL_GPU_SET,
					  .bytes = 6291456,
					  .src_kind = 3});
	events__gpu(e, (struct event_gpu){.start_ns = 5512270,
					  .end_ns = 5514270,
					  .stream = 7,
					  .correlation_id = 1511,
					  .kind = TL_GPU_COPY,
					  .bytes = 1,
					  .copy_kind = 2,
					  .src_kind = 3,
					  .dst_kind = 1});
	text = trace_of(events__timeline(e));
	assert_non_null(strstr(
		text, "{\"ph\":\"X\",\"cat\":\"gpu_memset\",\"name\":\"Memset (Device)\",\"pid\":0,"
		      "\"tid\":7,\"ts\":4451.267,\"dur\":4.960,\"args\":{\"device\":0,"
		      "\"context\":1,\"stream\":7,\"correlation\":57609,\"bytes\":6291456,"
		      "\"memory bandwidth (GB/s)\":1268.4387096774194}}"));
	assert_non_null(strstr(
		text, "{\"ph\":\"X\",\"cat\":\"gpu_memcpy\",\"name\":\"Memcpy DtoH (Device -> "
		      "Pageable)\",\"pid\":0,\"tid\":7,\"ts\":5512.270,\"dur\":2.000,\"args\":{"
		      "\"device\":0,\"context\":1,\"stream\":7,\"correlation\":1511,\"bytes\":1,"
		      "\"memory bandwidth (GB/s)\":0.0005}}"));
	free(text);
}

/* Two processes use the same ids, device and stream: their arrows stay apart, their rows too, since
 * by one number they may mean two GPUs. */
static void test_processes(void **state)
{
	struct events *e = *state;
	char *text;

	events__process(e, 1, 4343, "other");
	for (uint16_t i = 0; i < 2; i++) {
		events__api(e, (struct event_api){.name = "cudaLaunchKernel",
						  .process = i,
						  .tid = 200U + i,
						  .correlation_id = 5,
						  .start_ns = 1000 + i,
						  .end_ns = 1100,
						  .cupti = true});
		events__gpu(e, (struct event_gpu){.name = "k",
						  .process = i,
						  .correlation_id = 5,
						  .stream = 7,
						  .start_ns = 2000 + i,
						  .end_ns = 3000});
	}
	text = trace_of(events__timeline(e));
	assert_int_equal(count_of(text, "{\"ph\":\"s\",\"id\":5,"), 1);
	assert_int_equal(count_of(text, "{\"ph\":\"f\",\"id\":5,"), 1);
	assert_int_equal(count_of(text, "{\"ph\":\"s\",\"id\":4294967301,"), 1);
	assert_int_equal(count_of(text, "{\"ph\":\"f\",\"id\":4294967301,"), 1);
	assert_non_null(strstr(text, "\"name\":\"k\",\"pid\":0,\"tid\":7,\"ts\":2.000"));
	assert_non_null(strstr(text, "\"name\":\"k\",\"pid\":15000000,\"tid\":7,\"ts\":2.001"));
	assert_int_equal(count_of(text, "{\"name\":\"stream 7 \"}"), 2);
	assert_null(strstr(text, "(overlap)"));
	assert_int_equal(count_of(text, "{\"labels\":\"GPU 0 of process 4242\"}"), 1);
	assert_int_equal(count_of(text, "{\"labels\":\"GPU 0 of process 4343\"}"), 1);
	free(text);
}

/* Each has its rows for device 0, in the order of the processes, and what CUPTI took stands last.
 */
static void test_many_processes(void **state)
{
	static const char *const sorted[] = {
		"\"pid\":0,\"tid\":0,\"args\":{\"sort_index\":5000000}", "\"sort_index\":5001024}",
		"\"sort_index\":5002048}", "\"sort_index\":16777226}"};
	const struct gp_ev_overhead overhead = {.head = {.kind = GP_EV_OVERHEAD, .time_ns = 4000},
						.start_ns = 3500};
	struct events *e = *state;
	const char *at;
	char *text;

	events__process(e, 1, 4343, "other");
	events__rank(e, 2, 4444, "rank", 3);
	for (uint16_t i = 0; i < 3; i++)
		events__gpu(e, (struct event_gpu){.name = "k",
						  .process = i,
						  .stream = 7,
						  .start_ns = 2000 + i,
						  .end_ns = 3000});
	events__raw(e, &overhead, sizeof(overhead));
	at = text = trace_of(events__timeline(e));
	assert_int_equal(count_of(text, "{\"labels\":\"GPU 0 of rank 3\"}"), 1);
	for (size_t i = 0; i < 4; i++) {
		at = strstr(at, sorted[i]);
		assert_non_null(at);
	}
	free(text);
}

/* Names of kernels are the target's. */
static void test_hostile(void **state)
{
	struct events *e = *state;
	char *text;

	events__gpu(e, (struct event_gpu){.name = "\"\\\n\x01\xff</script>",
					  .start_ns = 1,
					  .end_ns = (1ULL << 62) - 1,
					  .device = TL_NONE - 1,
					  .stream = TL_NONE - 1});
	events__gpu(e, (struct event_gpu){
			       .name = "no device", .start_ns = 1, .end_ns = 2, .device = TL_NONE});
	text = trace_of(events__timeline(e));
	assert_non_null(strstr(text, "\"name\":\"\\\"\\\\\\u000a\\u0001\\ufffd</script>\","
				     "\"pid\":4294967294,\"tid\":4294967294,"));
	assert_null(strstr(text, "no device"));
	assert_non_null(strstr(text, "\"gpu_not_drawn\": 1"));
	assert_int_equal(count_of(text, "\"dur\":-"), 0);
	free(text);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, events_setup, events_teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		CASE(test_golden_trace), CASE(test_golden_tables),  CASE(test_kineto_lines),
		CASE(test_processes),	 CASE(test_many_processes), CASE(test_hostile),
	};

	golden_init(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
