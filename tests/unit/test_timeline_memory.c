/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Allocations and frees: pairs, totals, and whose they are.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "events.h"

#define T	(1ULL << 32)
#define UNKNOWN (GP_MEMORY_FREE | GP_MEMORY_SIZE_UNKNOWN)

static void allocate(struct events *e, uint64_t time_ns, uint64_t instance, uint64_t address,
		     int64_t bytes)
{
	events__memory(e, (struct event_memory){.time_ns = time_ns,
						.instance = instance,
						.address = address,
						.bytes = bytes});
}

static void release(struct events *e, uint64_t time_ns, uint64_t instance, uint64_t address)
{
	events__memory(e, (struct event_memory){.time_ns = time_ns,
						.instance = instance,
						.address = address,
						.flags = UNKNOWN});
}

static void two_ops(struct events *e)
{
	events__op(e, (struct event_op){.name = "in",
					.start_ns = 110,
					.end_ns = 150,
					.instance = T + 2,
					.parent = T + 1});
	events__op(e, (struct event_op){
			      .name = "out", .start_ns = 100, .end_ns = 200, .instance = T + 1});
}

static void test_pairs(void **state)
{
	struct events *e = *state;
	const struct timeline *t;
	const struct tl_memory *m;

	two_ops(e);
	allocate(e, 120, T + 2, 0x10, 1000);
	allocate(e, 125, T + 2, 0x20, 50);
	release(e, 130, T + 2, 0x20);
	release(e, 160, T + 1, 0x10);
	allocate(e, 170, T + 1, 0x10, 8); /* given out again */
	allocate(e, 300, 0, 0x30, 4);
	t = events__timeline(e);
	m = t->memory.items;
	assert_int_equal(t->memory.nr, 6);
	assert_int_equal(m[0].partner, 3);
	assert_int_equal(m[1].partner, 2);
	assert_int_equal(m[2].bytes, -50);
	assert_int_equal(m[3].bytes, -1000);
	assert_int_equal(m[4].partner, TL_NONE);
	assert_int_equal(m[1].total_bytes, 1050);
	assert_int_equal(m[3].total_bytes, 0);
	assert_int_equal(m[5].total_bytes, 12);
	assert_int_equal(m[5].op, TL_NONE);
	assert_int_equal(m[0].op, find_op(t, "in", 0));
	assert_int_equal(m[3].op, find_op(t, "out", 0));
	assert_int_equal(timeline__op_sums(t, find_op(t, "in", 0))->cpu_bytes, 1000);
	assert_int_equal(timeline__op_sums(t, find_op(t, "out", 0))->self_cpu_bytes, -992);
	assert_int_equal(timeline__op_sums(t, find_op(t, "out", 0))->cpu_bytes, 8);
	assert_int_equal(loss_of(t, "free_unknown"), 0);
	assert_int_equal(loss_of(t, "free_lost"), 0);
}

static void test_before_the_capture(void **state)
{
	struct events *e = *state;
	const struct timeline *t;

	events__loss(e, "free_unknown", 5);
	two_ops(e);
	release(e, 120, T + 2, 0x99);
	/* A free that says its size needs no partner. */
	events__memory(e, (struct event_memory){.time_ns = 130,
						.instance = T + 2,
						.address = 0x98,
						.bytes = -64,
						.flags = GP_MEMORY_FREE});
	t = events__timeline(e);
	assert_int_equal(t->memory.nr, 1);
	assert_int_equal(t->memory.items[0].bytes, -64);
	assert_int_equal(t->memory.items[0].total_bytes, -64);
	assert_int_equal(timeline__op_sums(t, find_op(t, "out", 0))->cpu_bytes, -64);
	assert_int_equal(loss_of(t, "free_unknown"), 6);
}

/* The same address on two devices and in two processes is four addresses. */
static void test_devices(void **state)
{
	struct events *e = *state;
	const struct timeline *t;
	const struct tl_memory *m;

	events__process(e, 1, 4243, "worker");
	two_ops(e);
	for (int i = 0; i < 4; i++)
		events__memory(e, (struct event_memory){.time_ns = 120 + (uint64_t)i,
							.process = (uint16_t)(i / 2),
							.device_type = (int16_t)(i % 2),
							.instance = i < 2 ? T + 2 : 0,
							.address = 0x10,
							.bytes = 1 << i,
							.flags = GP_MEMORY_TOTALS,
							.allocated_bytes = 100,
							.reserved_bytes = 200});
	for (int i = 0; i < 4; i++)
		events__memory(e, (struct event_memory){.time_ns = 130 + (uint64_t)i,
							.process = (uint16_t)(i / 2),
							.device_type = (int16_t)(i % 2),
							.address = 0x10,
							.flags = UNKNOWN});
	t = events__timeline(e);
	m = t->memory.items;
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(m[i].partner, 4 + i);
		assert_int_equal(m[i].total_bytes, 1 << i);
		assert_int_equal(m[i].allocated_bytes, 100);
		assert_int_equal(m[4 + i].total_bytes, 0);
		assert_int_equal(m[4 + i].allocated_bytes, 0);
	}
	assert_int_equal(timeline__op_sums(t, find_op(t, "out", 0))->cpu_bytes, 1);
	assert_int_equal(timeline__op_sums(t, find_op(t, "out", 0))->cuda_bytes, 2);
	assert_int_equal(timeline__op_sums(t, find_op(t, "out", 0))->self_cuda_bytes, 0);
}

/* A thread frees what another allocated; each has its own op open at the same time. */
static void test_threads(void **state)
{
	struct events *e = *state;
	const struct timeline *t;

	two_ops(e);
	events__op(e, (struct event_op){.name = "other",
					.tid = 7,
					.start_ns = 100,
					.end_ns = 200,
					.instance = 2 * T + 1});
	allocate(e, 120, T + 2, 0x10, 1000);
	events__memory(e, (struct event_memory){.time_ns = 130,
						.tid = 7,
						.instance = 2 * T + 1,
						.address = 0x10,
						.flags = UNKNOWN});
	/* Another thread's op cannot be this one's. */
	events__memory(
		e,
		(struct event_memory){
			.time_ns = 140, .tid = 7, .instance = T + 2, .address = 0x20, .bytes = 3});
	t = events__timeline(e);
	assert_int_equal(timeline__op_sums(t, find_op(t, "out", 0))->cpu_bytes, 1000);
	assert_int_equal(timeline__op_sums(t, find_op(t, "other", 0))->cpu_bytes, -997);
	assert_int_equal(loss_of(t, "memory_op_missing"), 1);
}

/* The op was lost: its memory belongs to what it stood in. */
static void test_op_missing(void **state)
{
	struct events *e = *state;
	const struct timeline *t;

	two_ops(e);
	allocate(e, 150, T + 5, 0x10, 1);
	allocate(e, 151, T + 5, 0x20, 2);
	allocate(e, 50, T + 5, 0x30, 4);
	allocate(e, 500, T + 5, 0x40, 8);
	/* What shows that it was lost and is not open still. */
	events__op(e, (struct event_op){
			      .name = "next", .start_ns = 600, .end_ns = 700, .instance = T + 6});
	t = events__timeline(e);
	assert_int_equal(loss_of(t, "memory_op_missing"), 4);
	assert_int_equal(t->memory.items[0].op, TL_NONE);
	assert_int_equal(t->memory.items[1].op, find_op(t, "in", 0));
	assert_int_equal(t->memory.items[2].op, find_op(t, "out", 0));
	assert_int_equal(t->memory.items[3].op, TL_NONE);
}

/* Ops that come by callback are not known to the programs that see the memory: time tells. */
static void test_callback(void **state)
{
	struct events *e = *state;
	const struct timeline *t;

	events__op(e, (struct event_op){.name = "out",
					.start_ns = 100,
					.end_ns = 200,
					.instance = 2 * T,
					.flags = GP_OP_CALLBACK});
	events__op(e, (struct event_op){.name = "async",
					.start_ns = 110,
					.end_ns = 120,
					.instance = 2 * T + 1,
					.flags = GP_OP_CALLBACK | GP_OP_ASYNC});
	events__op(e, (struct event_op){
			      .name = "probe", .start_ns = 300, .end_ns = 400, .instance = T});
	allocate(e, 115, 0, 0x10, 1);
	allocate(e, 250, 0, 0x20, 2);
	/* The probe's op was not open, or the event would say so. */
	allocate(e, 350, 0, 0x30, 4);
	t = events__timeline(e);
	assert_int_equal(t->memory.items[0].op, find_op(t, "out", 0));
	assert_int_equal(t->memory.items[1].op, TL_NONE);
	assert_int_equal(t->memory.items[2].op, TL_NONE);
	assert_int_equal(loss_of(t, "memory_op_missing"), 0);
}

static void test_lost_free(void **state)
{
	struct events *e = *state;
	const struct timeline *t;

	allocate(e, 100, 0, 0x10, 1000);
	allocate(e, 200, 0, 0x10, 10);
	release(e, 300, 0, 0x10);
	release(e, 400, 0, 0x10);
	t = events__timeline(e);
	assert_int_equal(loss_of(t, "free_lost"), 1);
	assert_int_equal(loss_of(t, "free_unknown"), 1);
	assert_int_equal(t->memory.items[1].total_bytes, 10);
	assert_int_equal(t->memory.items[2].total_bytes, 0);
	assert_int_equal(t->memory.items[0].partner, TL_NONE);
}

static void test_out_of_memory(void **state)
{
	struct events *e = *state;
	const struct timeline *t;

	two_ops(e);
	events__memory(e, (struct event_memory){.time_ns = 120,
						.instance = T + 2,
						.bytes = 1 << 30,
						.device_type = GP_DEVICE_CUDA,
						.flags = GP_MEMORY_OOM});
	/* More than any machine has, by a slip in a shape: that is why it was refused. */
	events__memory(e, (struct event_memory){.time_ns = 130,
						.instance = T + 2,
						.bytes = 4000000000000000000,
						.flags = GP_MEMORY_OOM});
	t = events__timeline(e);
	assert_int_equal(t->memory.nr, 0);
	assert_int_equal(t->out_of_memory.nr, 2);
	assert_int_equal(t->out_of_memory.items[0].bytes, 1 << 30);
	assert_int_equal(t->out_of_memory.items[1].bytes, 4000000000000000000);
	assert_int_equal(loss_of(t, "memory_invalid"), 0);
	assert_int_equal(timeline__op_sums(t, find_op(t, "in", 0))->cuda_bytes, 0);
}

static void test_hostile(void **state)
{
	static const int64_t sizes[] = {INT64_MIN, INT64_MAX, -1, 1LL << 60};
	struct events *e = *state;
	const struct timeline *t;

	for (size_t i = 0; i < 4; i++)
		allocate(e, 100 + i, 0, 0x10 + i, sizes[i]);
	events__memory(e,
		       (struct event_memory){
			       .time_ns = 200, .address = 1, .bytes = 5, .flags = GP_MEMORY_FREE});
	allocate(e, UINT64_MAX, 0, 0x10, 1);
	t = events__timeline(e);
	assert_int_equal(t->memory.nr, 0);
	assert_int_equal(loss_of(t, "memory_invalid"), 5);
	assert_int_equal(loss_of(t, "time_invalid"), 1);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, events_setup, events_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_pairs),     CASE(test_before_the_capture), CASE(test_devices),
		CASE(test_threads),   CASE(test_op_missing),	     CASE(test_callback),
		CASE(test_lost_free), CASE(test_out_of_memory),	     CASE(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
