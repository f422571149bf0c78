/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * GPU work, its calls and its ops: who asked for what, what is counted where that cannot be told,
 * and what the streams did.
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

static void add_op(struct events *e, const char *name, uint64_t instance, uint64_t parent,
		   uint64_t start_ns, uint64_t end_ns)
{
	events__op(e, (struct event_op){.name = name,
					.start_ns = start_ns,
					.end_ns = end_ns,
					.instance = T + instance,
					.parent = parent ? T + parent : 0});
}

/* By CUPTI. */
static void add_call(struct events *e, const char *name, uint32_t correlation_id, uint64_t start_ns,
		     uint64_t end_ns)
{
	events__api(e, (struct event_api){.name = name,
					  .correlation_id = correlation_id,
					  .start_ns = start_ns,
					  .end_ns = end_ns,
					  .cbid = 211,
					  .cupti = true});
}

static void add_probed(struct events *e, const char *name, uint64_t instance, uint64_t start_ns,
		       uint64_t end_ns)
{
	events__api(e, (struct event_api){.name = name,
					  .instance = instance ? T + instance : 0,
					  .start_ns = start_ns,
					  .end_ns = end_ns});
}

static void add_kernel(struct events *e, uint32_t correlation_id, uint64_t start_ns,
		       uint64_t end_ns)
{
	events__gpu(e, (struct event_gpu){.name = "kernel",
					  .correlation_id = correlation_id,
					  .stream = 7,
					  .start_ns = start_ns,
					  .end_ns = end_ns});
}

/* The op's name of the n-th piece of work, "" without one. */
static const char *op_of_work(const struct timeline *t, size_t n)
{
	const struct tl_gpu *g;

	assert_true(n < t->gpu.work.nr);
	g = &t->gpu.work.items[n];
	return g->op == TL_NONE ? "" : t->ops.items[g->op].name;
}

static const char *op_of_call(const struct timeline *t, size_t n)
{
	const struct tl_api *api;

	assert_true(n < t->gpu.api.nr);
	api = &t->gpu.api.items[n];
	return api->op == TL_NONE ? "" : t->ops.items[api->op].name;
}

static void check_no_gpu_loss(const struct timeline *t)
{
	static const char *const names[] = {
		"api_time_invalid",    "api_op_missing",   "api_unjoined",     "gpu_time_invalid",
		"gpu_unmatched",       "launch_unmatched", "gpu_early",	       "gpu_not_drawn",
		"sync_device_unknown", "time_invalid",	   "nesting_repaired",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (loss_of(t, names[i]))
			fail_msg("%s is not 0", names[i]);
}

/* Without a GPU event nothing about GPUs appears, not even counters. */
static void test_none(void **state)
{
	struct events *e = *state;
	const struct timeline *t;

	add_op(e, "f", 1, 0, 100, 200);
	t = events__timeline(e);
	assert_false(t->gpu.any);
	for (size_t i = 0; i < t->losses.nr; i++)
		assert_null(strstr(t->losses.items[i].name, "gpu"));
}

/* CUPTI alone: the op is the innermost in the middle of the call, whatever the clocks' error at its
 * ends; the call is cut to it. */
static void test_by_time(void **state)
{
	struct events *e = *state;
	const struct timeline *t;
	const struct tl_api *api;

	add_op(e, "inner", 2, 1, 1200, 1400);
	add_op(e, "next", 3, 1, 1420, 1500);
	add_op(e, "outer", 1, 0, 1000, 2000);
	add_call(e, "cudaLaunchKernel_v7000", 5, 1190, 1390);
	add_call(e, "cudaLaunchKernel_v7000", 6, 1405, 1425);
	add_call(e, "cudaLaunchKernel_v7000", 7, 2100, 2200);
	add_kernel(e, 6, 5000, 5100);
	add_kernel(e, 5, 3000, 4000);
	add_kernel(e, 7, 6000, 6300);
	t = events__timeline(e);
	assert_int_equal(t->gpu.api.nr, 3);
	api = t->gpu.api.items;
	assert_string_equal(api[0].name, "cudaLaunchKernel");
	assert_string_equal(op_of_call(t, 0), "inner");
	assert_int_equal(api[0].start_ns, 1200);
	assert_int_equal(api[0].end_ns, 1390);
	assert_string_equal(op_of_call(t, 1), "outer");
	assert_int_equal(api[1].start_ns, 1405);
	assert_int_equal(api[1].end_ns, 1420);
	assert_string_equal(op_of_call(t, 2), "");
	assert_string_equal(op_of_work(t, 0), "inner");
	assert_string_equal(op_of_work(t, 1), "outer");
	assert_string_equal(op_of_work(t, 2), "");
	assert_int_equal(timeline__op_sums(t, find_op(t, "inner", 0))->self_cuda_ns, 1000);
	assert_int_equal(timeline__op_sums(t, find_op(t, "outer", 0))->self_cuda_ns, 100);
	assert_int_equal(timeline__op_sums(t, find_op(t, "outer", 0))->cuda_ns, 1100);
	assert_int_equal(op_named(t, "inner", 0)->self_ns, 200 - 190);
	assert_int_equal(op_named(t, "outer", 0)->self_ns, 1000 - 200 - 80 - 15);
	check_no_gpu_loss(t);
}

/* A uprobe and CUPTI saw the same calls: one entry each, with the op of one and the id of the
 * other, in order; CUPTI's clock is off by a little. */
static void test_join(void **state)
{
	struct events *e = *state;
	const struct timeline *t;

	add_op(e, "f", 1, 0, 1000, 9000);
	for (uint32_t i = 0; i < 5; i++) {
		uint64_t at = 2000 + 1000 * i;

		add_probed(e, "cudaLaunchKernel", 1, at, at + 500);
		add_call(e, "cudaLaunchKernel_v7000", 10 + i, at - 20, at + 400);
		add_kernel(e, 10 + i, 20000 + at, 20100 + at);
	}
	/* Of the other function in the same window. */
	add_call(e, "cudaMemcpyAsync_v3020", 20, 2010, 2020);
	t = events__timeline(e);
	assert_int_equal(t->gpu.api.nr, 6);
	for (size_t i = 0; i < 5; i++) {
		assert_int_equal(t->gpu.work.items[i].correlation_id, 10 + i);
		assert_int_equal(t->gpu.api.items[t->gpu.work.items[i].api].start_ns,
				 2000 + 1000 * i);
		assert_int_equal(t->gpu.api.items[t->gpu.work.items[i].api].cbid, 211);
		assert_string_equal(op_of_work(t, i), "f");
	}
	check_no_gpu_loss(t);
}

/* Of probes on the entry only, CUPTI tells the end. */
static void test_join_entry_only(void **state)
{
	struct events *e = *state;
	const struct timeline *t;

	add_op(e, "f", 1, 0, 1000, 9000);
	add_probed(e, "cuLaunchKernel_ptsz", 1, 2000, 0);
	add_probed(e, "cuLaunchKernel_ptsz", 1, 3000, 0);
	add_call(e, "cuLaunchKernel_ptsz", 1, 2010, 2500);
	add_call(e, "cuLaunchKernel_ptsz", 2, 3010, 3500);
	add_probed(e, "cuInit", 1, 4000, 0);
	t = events__timeline(e);
	assert_int_equal(t->gpu.api.nr, 3);
	assert_int_equal(t->gpu.api.items[0].end_ns, 2500);
	assert_int_equal(t->gpu.api.items[0].correlation_id, 1);
	assert_int_equal(t->gpu.api.items[1].correlation_id, 2);
	assert_int_equal(t->gpu.api.items[2].end_ns, 4000);
	assert_int_equal(t->gpu.api.items[2].correlation_id, 0);
	assert_int_equal(loss_of(t, "api_unjoined"), 0);
	/* No kernel came. */
	assert_int_equal(loss_of(t, "launch_unmatched"), 2);
}

/* A call that only one of the two saw, of a function that both were watching then. Other threads do
 * not help. The first call came before CUPTI did. */
static void test_unjoined(void **state)
{
	struct events *e = *state;
	const struct timeline *t;

	add_probed(e, "cudaLaunchKernel", 0, 500, 600);
	add_probed(e, "cudaLaunchKernel", 0, 1000, 1100);
	add_call(e, "cudaLaunchKernel", 1, 1010, 1090);
	add_probed(e, "cudaLaunchKernel", 0, 2000, 2100);
	add_call(e, "cudaLaunchKernel", 2, 3010, 3090);
	add_probed(e, "cudaLaunchKernel", 0, 3500, 3600);
	add_call(e, "cudaLaunchKernel", 4, 3510, 3590);
	events__api(e, (struct event_api){.name = "cudaLaunchKernel",
					  .start_ns = 3000,
					  .end_ns = 3100,
					  .tid = 101});
	add_call(e, "cudaFree", 3, 4000, 4100);
	for (uint32_t i = 1; i < 5; i++)
		if (i != 3)
			add_kernel(e, i, 5000 + 100 * i, 5050 + 100 * i);
	t = events__timeline(e);
	assert_int_equal(t->gpu.api.nr, 7);
	assert_int_equal(loss_of(t, "api_unjoined"), 3);
	assert_int_equal(loss_of(t, "launch_unmatched"), 0);
}

/* What the runtime asks of the driver is the runtime's call, and so is its work. */
static void test_driver_in_runtime(void **state)
{
	struct events *e = *state;
	const struct timeline *t;

	add_op(e, "f", 1, 0, 1000, 9000);
	add_call(e, "cudaLaunchKernel", 5, 2000, 2500);
	events__api(e, (struct event_api){.name = "cuLaunchKernel",
					  .start_ns = 2100,
					  .end_ns = 2400,
					  .correlation_id = 6,
					  .cupti = true,
					  .driver = true});
	add_kernel(e, 6, 3000, 3100);
	/* Static runtime: the driver call is the call. */
	events__api(e, (struct event_api){.name = "cuLaunchKernel",
					  .start_ns = 2600,
					  .end_ns = 2700,
					  .correlation_id = 7,
					  .cupti = true,
					  .driver = true});
	add_kernel(e, 7, 4000, 4100);
	/* One runtime call in another stays: the outer one's own time is less. */
	add_call(e, "cudaMalloc", 8, 5000, 6000);
	add_call(e, "cudaFree", 9, 5100, 5200);
	t = events__timeline(e);
	assert_int_equal(t->gpu.api.nr, 4);
	assert_int_equal(t->gpu.work.items[0].api, 0);
	assert_int_equal(t->gpu.work.items[1].api, 1);
	assert_int_equal(t->gpu.api.items[1].flags, GP_API_CUPTI | GP_API_DRIVER);
	assert_int_equal(t->gpu.api.items[2].self_ns, 900);
	assert_int_equal(t->gpu.api.items[3].parent, 2);
	assert_int_equal(op_named(t, "f", 0)->self_ns, 8000 - 500 - 100 - 1000);
	check_no_gpu_loss(t);
}

/* A graph: one call, many pieces of work. And an id that came back: the last call before counts. */
static void test_correlation(void **state)
{
	struct events *e = *state;
	const struct timeline *t;

	events__process(e, 1, 4343, "python");
	add_call(e, "cudaGraphLaunch", 5, 10000000, 10001000);
	add_kernel(e, 5, 10002000, 10002100);
	add_kernel(e, 5, 10002200, 10002300);
	add_call(e, "cudaLaunchKernel", 5, 20000000, 20001000);
	add_kernel(e, 5, 20002000, 20002100);
	/* Before any call of the id by more than clocks err; of another process; of no id. */
	add_kernel(e, 5, 8000000, 8000100);
	events__gpu(e, (struct event_gpu){.name = "kernel",
					  .correlation_id = 5,
					  .process = 1,
					  .start_ns = 20003000,
					  .end_ns = 20003100});
	add_kernel(e, 0, 20004000, 20004100);
	t = events__timeline(e);
	assert_int_equal(t->gpu.work.items[0].api, TL_NONE);
	assert_int_equal(t->gpu.work.items[1].api, 0);
	assert_int_equal(t->gpu.work.items[2].api, 0);
	assert_int_equal(t->gpu.work.items[3].api, 1);
	assert_int_equal(t->gpu.work.items[4].api, TL_NONE);
	assert_int_equal(t->gpu.work.items[5].api, TL_NONE);
	assert_int_equal(t->gpu.api.items[0].gpu_nr, 2);
	assert_int_equal(loss_of(t, "gpu_unmatched"), 3);
	assert_int_equal(loss_of(t, "launch_unmatched"), 0);
}

/* Some CUPTIs number the work of graphs wrongly: what is another call's id is nobody's then. */
static void test_graph_by_another_call(void **state)
{
	static const char *const names[] = {"cudaLaunchKernel", "cudaGraphLaunch",
					    "cuGraphLaunch_ptsz"};
	struct events *e = *state;
	const struct timeline *t;

	for (uint32_t i = 0; i < 3; i++) {
		add_call(e, names[i], 5 + i, 10000 + i * 10000, 11000 + i * 10000);
		events__gpu(e, (struct event_gpu){.name = "kernel",
						  .correlation_id = 5 + i,
						  .stream = 7,
						  .graph = 9,
						  .graph_node = 3,
						  .start_ns = 12000 + i * 10000,
						  .end_ns = 12100 + i * 10000});
	}
	t = events__timeline(e);
	assert_int_equal(t->gpu.work.items[0].api, TL_NONE);
	assert_int_equal(t->gpu.api.items[0].gpu_nr, 0);
	assert_int_equal(t->gpu.work.items[1].api, 1);
	assert_int_equal(t->gpu.work.items[2].api, 2);
	assert_int_equal(loss_of(t, "gpu_unmatched"), 1);
}

/* Work that seems to begin before its call: as it is in the numbers, later in a drawing. */
static void test_early(void **state)
{
	struct events *e = *state;
	const struct timeline *t;
	const struct tl_gpu *g;

	add_call(e, "cudaLaunchKernel", 5, 10000, 10500);
	add_call(e, "cudaLaunchKernel", 6, 20000, 20500);
	add_kernel(e, 5, 9900, 10900);
	add_kernel(e, 6, 19000, 19500);
	t = events__timeline(e);
	g = t->gpu.work.items;
	assert_int_equal(loss_of(t, "gpu_early"), 2);
	assert_int_equal(loss_of(t, "gpu_unmatched"), 0);
	assert_int_equal(g[0].start_ns, 9900);
	assert_int_equal(g[0].shown_start_ns, 10000);
	assert_int_equal(g[0].shown_end_ns, 10900);
	assert_int_equal(g[1].shown_start_ns, 20000);
	assert_int_equal(g[1].shown_end_ns, 20000);
	assert_int_equal(t->gpu.streams.items[0].sum_ns, 1500);
	/* How long they waited is not known. */
	assert_int_equal(t->gpu.streams.items[0].queue_nr, 0);
}

static void test_refused_times(void **state)
{
	struct events *e = *state;
	const struct timeline *t;

	add_kernel(e, 1, 0, 100);
	add_kernel(e, 1, 200, 199);
	add_kernel(e, 1, 200, 1ULL << 62);
	add_call(e, "cudaFree", 1, 0, 100);
	add_call(e, "cudaFree", 1, 100, 0);
	add_call(e, "cudaFree", 1, 100, 99);
	t = events__timeline(e);
	assert_int_equal(t->gpu.work.nr + t->gpu.api.nr, 0);
	assert_int_equal(loss_of(t, "gpu_time_invalid"), 3);
	assert_int_equal(loss_of(t, "api_time_invalid"), 3);
}

/* Sum and union, idle time, delay, by stream and by device. */
static void test_use(void **state)
{
	struct events *e = *state;
	const struct tl_gpu_use *u;
	const struct timeline *t;

	add_call(e, "cudaLaunchKernel", 1, 1000, 1100);
	add_call(e, "cudaLaunchKernel", 2, 2000, 2100);
	add_kernel(e, 1, 3000, 5000);
	add_kernel(e, 2, 4000, 4500);
	add_kernel(e, 0, 7000, 8000);
	events__gpu(e, (struct event_gpu){.kind = TL_GPU_COPY,
					  .stream = 9,
					  .start_ns = 4800,
					  .end_ns = 5200,
					  .bytes = 64});
	events__gpu(e, (struct event_gpu){.kind = TL_GPU_SET,
					  .stream = 7,
					  .device = 1,
					  .start_ns = 4800,
					  .end_ns = 5200});
	/* No work. */
	events__gpu(e, (struct event_gpu){.kind = TL_GPU_SYNC,
					  .stream = 7,
					  .start_ns = 100,
					  .end_ns = 9000,
					  .what = 3});
	t = events__timeline(e);
	assert_int_equal(t->gpu.streams.nr, 3);
	assert_int_equal(t->gpu.devices.nr, 2);
	u = &t->gpu.streams.items[0];
	assert_int_equal(u->nr, 3);
	assert_int_equal(u->sum_ns, 3500);
	assert_int_equal(u->busy_ns, 3000);
	assert_int_equal(u->last_ns - u->first_ns, 5000);
	assert_int_equal(u->queue_nr, 2);
	assert_int_equal(u->queue_sum_ns, 4000);
	assert_int_equal(u->queue_max_ns, 2000);
	u = &t->gpu.devices.items[0];
	assert_int_equal(u->sum_ns, 3900);
	assert_int_equal(u->busy_ns, 3200);
	assert_int_equal(t->gpu.devices.items[1].busy_ns, 400);
}

/* One row a stream; what overlaps goes to the next, synchronisations never onto the stream's. */
static void test_lanes(void **state)
{
	struct events *e = *state;
	const struct timeline *t;

	for (uint64_t i = 0; i < 40; i++)
		add_kernel(e, 0, 1000 + i, 2000);
	add_kernel(e, 0, 2000, 2100);
	events__gpu(e, (struct event_gpu){.kind = TL_GPU_SYNC,
					  .stream = 7,
					  .start_ns = 3000,
					  .end_ns = 3100,
					  .what = 3});
	t = events__timeline(e);
	for (uint32_t i = 0; i < 32; i++)
		assert_int_equal(t->gpu.work.items[i].lane, i);
	assert_int_equal(t->gpu.work.items[32].lane, TL_NONE);
	assert_int_equal(t->gpu.work.items[40].lane, 0);
	assert_int_equal(t->gpu.work.items[41].lane, 1);
	assert_int_equal(loss_of(t, "gpu_not_drawn"), 8);
}

/* Their context is another's device, or nobody's. */
static void test_sync(void **state)
{
	struct events *e = *state;
	const struct timeline *t;
	struct gp_ev_sync other = {
		.head = {.kind = GP_EV_SYNC, .time_ns = 600}, .start_ns = 500, .context = 9};
	struct gp_ev_kernel two = {.head = {.kind = GP_EV_KERNEL, .time_ns = 4100}, .context = 5};

	add_call(e, "cudaStreamSynchronize", 4, 2500, 2700);
	events__gpu(e, (struct event_gpu){.kind = TL_GPU_SYNC,
					  .stream = TL_NONE,
					  .device = 3,
					  .correlation_id = 4,
					  .start_ns = 2550,
					  .end_ns = 2650,
					  .what = 4});
	events__gpu(
		e,
		(struct event_gpu){
			.name = "k", .device = 3, .stream = 7, .start_ns = 3000, .end_ns = 3100});
	events__raw(e, &other, sizeof(other));
	/* A context on two devices tells none. */
	other.start_ns = 3200;
	other.head.time_ns = 3300;
	other.context = 5;
	events__raw(e, &other, sizeof(other));
	for (uint32_t i = 0; i < 2; i++) {
		two.device = i;
		two.start_ns = 4000 + i;
		events__raw(e, &two, sizeof(two));
	}
	t = events__timeline(e);
	assert_string_equal(t->gpu.work.items[0].name, "Unknown Sync");
	assert_int_equal(t->gpu.work.items[0].device, TL_NONE);
	assert_int_equal(t->gpu.work.items[0].lane, TL_NONE);
	assert_string_equal(t->gpu.work.items[1].name, "Context Sync");
	assert_int_equal(t->gpu.work.items[1].device, 3);
	assert_int_equal(t->gpu.work.items[1].api, 0);
	assert_int_equal(t->gpu.work.items[3].kind, TL_GPU_SYNC);
	assert_int_equal(t->gpu.work.items[3].device, TL_NONE);
	assert_int_equal(loss_of(t, "sync_device_unknown"), 2);
}

static void add_clock(struct events *e, uint16_t process, uint64_t time_ns, uint64_t gpu_ns,
		      uint64_t width_ns)
{
	struct gp_ev_clock c = {
		.head = {.kind = GP_EV_CLOCK, .process = process, .time_ns = time_ns},
		.gpu_ns = gpu_ns,
		.width_ns = width_ns};

	events__raw(e, &c, sizeof(c));
}

/* The wider of two readings and how far the clocks moved between them, or, where one was set, which
 * is counted, could have moved. Each process has its own. */
static void test_clock(void **state)
{
	struct events *e = *state;
	const struct timeline *t;

	events__process(e, 1, 4343, "other");
	add_clock(e, 0, 1000000, 9000000, 50);
	add_clock(e, 1, 1000001, 5, 40);
	add_clock(e, 0, 2000000, 9999400, 70);
	add_clock(e, 1, 2000001, 1000105, 60);
	add_clock(e, 0, 3000000, 99000000, 20);
	add_clock(e, 0, 4000000, 100000000, 20);
	add_clock(e, 0, 5000000, 90000000, 20);
	t = events__timeline(e);
	assert_int_equal(t->gpu.clock_readings, 7);
	assert_int_equal(t->gpu.clock_error_ns, 70 + 1000);
	assert_int_equal(t->gpu.clock_steps, 2);
}

/* An op that the probe named and that is lost: the op at that time, and a count. One that was still
 * open at the end is no loss. */
static void test_lost_op(void **state)
{
	struct events *e = *state;
	const struct timeline *t;

	add_op(e, "f", 1, 0, 1000, 2000);
	add_op(e, "g", 7, 0, 5000, 6000);
	add_probed(e, "cudaFree", 3, 1500, 1600);
	add_probed(e, "cudaFree", 4, 3000, 3100);
	add_probed(e, "cudaFree", 9, 7000, 7100);
	t = events__timeline(e);
	assert_string_equal(op_of_call(t, 0), "f");
	assert_string_equal(op_of_call(t, 1), "");
	assert_string_equal(op_of_call(t, 2), "");
	assert_int_equal(loss_of(t, "api_op_missing"), 2);
}

/* The op by instance where ops come by callback too: the innermost of both. */
static void test_callback_ops(void **state)
{
	struct events *e = *state;
	const struct timeline *t;

	add_op(e, "f", 1, 0, 1000, 2000);
	events__op(e, (struct event_op){.name = "by_callback",
					.start_ns = 1100,
					.end_ns = 1900,
					.instance = 5 * T + 1,
					.flags = GP_OP_CALLBACK});
	add_probed(e, "cudaFree", 1, 1500, 1600);
	t = events__timeline(e);
	assert_string_equal(parent_name(t, "by_callback", 0), "f");
	assert_string_equal(op_of_call(t, 0), "by_callback");
	assert_int_equal(loss_of(t, "api_op_missing"), 0);
}

/* A call beside the only child of the same name keeps that in the table. */
static void test_collapse(void **state)
{
	struct events *e = *state;
	const struct timeline *t;
	struct table *table;

	add_op(e, "f", 2, 1, 1100, 1500);
	add_op(e, "f", 1, 0, 1000, 2000);
	add_op(e, "g", 4, 3, 3100, 3500);
	add_op(e, "g", 3, 0, 3000, 4000);
	add_call(e, "cudaLaunchKernel", 1, 1600, 1700);
	add_call(e, "cudaLaunchKernel", 2, 3200, 3300);
	add_kernel(e, 1, 5000, 5100);
	add_kernel(e, 2, 6000, 6200);
	t = events__timeline(e);
	assert_false(op_named(t, "f", 1)->collapsed);
	assert_true(op_named(t, "g", 1)->collapsed);
	table = table_of(t, (struct table_options){0});
	assert_int_equal(table->rows.nr, 4);
	assert_string_equal(table->rows.items[2].name, "g");
	assert_int_equal(table->rows.items[2].self_cuda_ns, 200);
	assert_int_equal(table->rows.items[2].cuda_total_ns, 200);
	assert_int_equal(table->rows.items[2].self_cpu_ns, 900);
	assert_string_equal(table->rows.items[3].name, "kernel");
	assert_int_equal(table->rows.items[3].device, TABLE_CUDA);
	assert_int_equal(table->rows.items[3].calls, 2);
	assert_int_equal(table->self_cuda_total_ns, 300);
	assert_true(table->rows.items[1].has_parent);
	table__free(table);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, events_setup, events_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_none),	 CASE(test_by_time),
		CASE(test_join),	 CASE(test_join_entry_only),
		CASE(test_unjoined),	 CASE(test_driver_in_runtime),
		CASE(test_correlation),	 CASE(test_graph_by_another_call),
		CASE(test_early),	 CASE(test_refused_times),
		CASE(test_use),		 CASE(test_lanes),
		CASE(test_sync),	 CASE(test_lost_op),
		CASE(test_callback_ops), CASE(test_collapse),
		CASE(test_clock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
