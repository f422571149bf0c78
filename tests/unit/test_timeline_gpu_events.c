/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Which records of CUDA events synchronisations wait for, names of kernels, CUPTI's own time.
 */
#include "unit/events.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define TID   100 /* of events without one */
#define OTHER 101

static void add_record(struct events *e, uint32_t correlation_id, uint32_t event,
		       uint64_t record_id, uint64_t time_ns)
{
	struct gp_ev_cuda_event ev = {
		.head = {.kind = GP_EV_CUDA_EVENT,
			 .flags = time_ns ? GP_CUDA_EVENT_TIMED : 0,
			 .time_ns = time_ns ? time_ns : 99000},
		.record_id = record_id,
		.correlation_id = correlation_id,
		.context = 4,
		.stream = 10 + correlation_id,
		.event = event,
		.device = 3,
	};

	events__raw(e, &ev, sizeof(ev));
}

static void add_wait(struct events *e, uint32_t correlation_id, uint32_t what, uint32_t event,
		     uint64_t record_id)
{
	struct gp_ev_sync_event ev = {
		.sync = {.head = {.kind = GP_EV_SYNC, .time_ns = 1000 * correlation_id + 10},
			 .start_ns = 1000 * correlation_id,
			 .correlation_id = correlation_id,
			 .what = what,
			 .context = 4,
			 .stream = TL_NONE,
			 .event = event},
		.record_id = record_id,
	};

	/* As recordings of before have it. */
	events__raw(e, &ev, record_id ? sizeof(ev) : sizeof(ev.sync));
}

/* By CUPTI's number of the record, else the last one before, whatever order they come in. */
static void test_waits_for_events(void **state)
{
	static const struct {
		uint32_t record, stream;
	} expected[] = {{0, TL_NONE}, {2, 12}, {6, 16}, {2, 12}, {3, 13}, {0, TL_NONE}, {6, 16}};
	struct events *e = *state;
	const struct timeline *t;

	add_wait(e, 1, TL_SYNC_EVENT, 8, 0); /* recorded later only */
	add_wait(e, 4, TL_SYNC_STREAM_WAIT, 8, 0);
	add_wait(e, 7, TL_SYNC_EVENT, 8, 0);
	add_wait(e, 8, TL_SYNC_EVENT, 8, 20);
	add_wait(e, 9, TL_SYNC_EVENT, 9, 0);
	add_wait(e, 10, TL_SYNC_STREAM, 8, 0);
	add_wait(e, 11, TL_SYNC_EVENT, 8, 777); /* a record that was lost */
	add_record(e, 6, 8, 60, 6500);
	add_record(e, 2, 8, 20, 0);
	add_record(e, 3, 9, 30, 0);
	t = events__timeline(e);
	assert_int_equal(t->gpu.work.nr, 7);
	for (size_t i = 0; i < 7; i++) {
		assert_int_equal(t->gpu.work.items[i].sync.record_correlation_id,
				 expected[i].record);
		assert_int_equal(t->gpu.work.items[i].sync.record_stream, expected[i].stream);
	}
	assert_int_equal(t->gpu.events.nr, 1);
	assert_int_equal(t->gpu.events.items[0].time_ns, 6500);
	assert_int_equal(t->gpu.events.items[0].op, TL_NONE);
}

/* Read out as far as Kineto does it: up to 1,024 bytes. */
static void test_names_of_kernels(void **state)
{
	struct events *e = *state;
	const struct timeline *t;
	char names[2][1026] = {"_Z1018", "_Z1019"};

	for (uint32_t i = 0; i < 2; i++) {
		memset(names[i] + 6, 'a', 1018 + i);
		events__gpu(e, (struct event_gpu){.name = names[i],
						  .stream = 7,
						  .start_ns = 2000 + 1000 * i,
						  .end_ns = 2100 + 1000 * i});
	}
	t = events__timeline(e);
	assert_int_equal(t->gpu.work.nr, 2);
	assert_string_equal(t->gpu.work.items[0].name, names[0] + 6);
	assert_string_equal(t->gpu.work.items[1].name, names[1]);
}

static void add_overhead(struct events *e, uint32_t tid, uint64_t start_ns, uint64_t end_ns)
{
	struct gp_ev_overhead ev = {
		.head = {.kind = GP_EV_OVERHEAD, .tid = tid, .time_ns = end_ns},
		.start_ns = start_ns,
		.what = 2U << 16,
	};

	events__raw(e, &ev, sizeof(ev));
}

/* It is a call of its own in the call or operator in which it came, but not outside of them, on a
 * thread that CUPTI has for itself, or where the thread is not told. */
static void test_overhead(void **state)
{
	struct events *e = *state;
	const struct timeline *t;
	const struct tl_api *launch, *in_launch, *in_op;

	events__op(e, (struct event_op){.name = "op", .start_ns = 1000, .end_ns = 9000});
	events__api(e, (struct event_api){.name = "cudaLaunchKernel_v7000",
					  .correlation_id = 1,
					  .start_ns = 2000,
					  .end_ns = 5000,
					  .cupti = true});
	add_overhead(e, TID, 2500, 4500);
	add_overhead(e, TID, 6000, 6300);
	add_overhead(e, TID, 9500, 9600);
	add_overhead(e, OTHER, 3000, 3500);
	add_overhead(e, 0, 3000, 3500);
	t = events__timeline(e);
	assert_int_equal(t->gpu.overhead.nr, 5);
	assert_int_equal(t->gpu.api.nr, 3);
	launch = &t->gpu.api.items[0];
	in_launch = &t->gpu.api.items[1];
	in_op = &t->gpu.api.items[2];
	assert_int_equal(launch->self_ns, 1000);
	assert_true(in_launch->flags & in_op->flags & GP_API_OVERHEAD);
	assert_int_equal(in_launch->parent, 0);
	assert_int_equal(in_launch->self_ns, 2000);
	assert_string_equal(in_launch->name, t->gpu.overhead.items[0].name);
	assert_int_equal(in_op->parent, TL_NONE);
	assert_int_equal(t->ops.items[0].self_ns, 8000 - 3000 - 300);
}

/* A call that begins in it and goes on is no part of it, nor is one that lies in it. */
static void test_overhead_at_a_call(void **state)
{
	struct events *e = *state;
	const struct timeline *t;
	const struct tl_api *overhead, *driver, *runtime;

	events__op(e, (struct event_op){.name = "op", .start_ns = 1000, .end_ns = 9000});
	add_overhead(e, TID, 2000, 4000);
	events__api(e, (struct event_api){.name = "cuLaunchKernel",
					  .correlation_id = 1,
					  .start_ns = 2100,
					  .end_ns = 2500,
					  .driver = true,
					  .cupti = true});
	events__api(e, (struct event_api){.name = "cudaMemcpyAsync_v3020",
					  .correlation_id = 2,
					  .start_ns = 3500,
					  .end_ns = 6000,
					  .cupti = true});
	t = events__timeline(e);
	assert_int_equal(t->gpu.api.nr, 3);
	overhead = &t->gpu.api.items[0];
	driver = &t->gpu.api.items[1];
	runtime = &t->gpu.api.items[2];
	assert_true(overhead->flags & GP_API_OVERHEAD);
	assert_int_equal(overhead->correlation_id, 0);
	assert_int_equal(overhead->end_ns, 3500);
	assert_int_equal(overhead->self_ns, 1500 - 400);
	assert_int_equal(driver->parent, 0);
	assert_int_equal(runtime->parent, TL_NONE);
	assert_int_equal(runtime->self_ns, 2500);
	assert_int_equal(t->ops.items[0].self_ns, 8000 - 1500 - 2500);
	assert_int_equal(loss_of(t, "nesting_repaired"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_waits_for_events, events_setup,
						events_teardown),
		cmocka_unit_test_setup_teardown(test_names_of_kernels, events_setup,
						events_teardown),
		cmocka_unit_test_setup_teardown(test_overhead, events_setup, events_teardown),
		cmocka_unit_test_setup_teardown(test_overhead_at_a_call, events_setup,
						events_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
