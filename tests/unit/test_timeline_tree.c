/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Nesting of ops: by instance, by containment, with exceptions, on several threads, and from
 * events that cannot be true. check_timeline() runs on every timeline that is built.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "events.h"

#define T (1ULL << 32) /* instances of the first thread */

static const struct tl_op *op(const struct timeline *t, const char *name, unsigned int nth)
{
	uint32_t i = find_op(t, name, nth);

	assert_int_not_equal(i, TL_NONE);
	return &t->ops.items[i];
}

static const char *parent_of(const struct timeline *t, const char *name, unsigned int nth)
{
	const struct tl_op *o = op(t, name, nth);

	return o->parent == TL_NONE ? "" : t->ops.items[o->parent].name;
}

static int setup(void **state)
{
	*state = events__new();
	return 0;
}

static int teardown(void **state)
{
	events__free(*state);
	return 0;
}

static void test_tree(void **state)
{
	struct events *e = *state;
	const struct timeline *t;

	/* Children come first, as they end first. */
	events__op(e, (struct event_op){.name = "c",
					.start_ns = 120,
					.end_ns = 130,
					.instance = T + 3,
					.parent = T + 2});
	events__op(e, (struct event_op){.name = "b",
					.start_ns = 110,
					.end_ns = 140,
					.instance = T + 2,
					.parent = T + 1});
	events__op(e, (struct event_op){.name = "d",
					.start_ns = 150,
					.end_ns = 160,
					.instance = T + 4,
					.parent = T + 1});
	events__op(e, (struct event_op){
			      .name = "a", .start_ns = 100, .end_ns = 200, .instance = T + 1});
	events__op(e, (struct event_op){
			      .name = "e", .start_ns = 200, .end_ns = 210, .instance = T + 5});
	t = events__timeline(e);
	assert_int_equal(t->ops.nr, 5);
	assert_string_equal(parent_of(t, "a", 0), "");
	assert_string_equal(parent_of(t, "b", 0), "a");
	assert_string_equal(parent_of(t, "c", 0), "b");
	assert_string_equal(parent_of(t, "d", 0), "a");
	assert_string_equal(parent_of(t, "e", 0), "");
	assert_int_equal(op(t, "a", 0)->self_ns, 60);
	assert_int_equal(op(t, "b", 0)->self_ns, 20);
	assert_int_equal(op(t, "c", 0)->depth, 2);
	for (size_t i = 0; i < t->losses.nr; i++)
		assert_int_equal(t->losses.items[i].count, 0);
}

/* All at the same time: instances say who came first. */
static void test_same_times(void **state)
{
	struct events *e = *state;
	const struct timeline *t;

	events__op(e, (struct event_op){.name = "in",
					.start_ns = 100,
					.end_ns = 100,
					.instance = T + 2,
					.parent = T + 1});
	events__op(e, (struct event_op){
			      .name = "out", .start_ns = 100, .end_ns = 100, .instance = T + 1});
	events__op(e, (struct event_op){
			      .name = "next", .start_ns = 100, .end_ns = 150, .instance = T + 3});
	t = events__timeline(e);
	assert_string_equal(parent_of(t, "in", 0), "out");
	assert_string_equal(parent_of(t, "next", 0), "");
	assert_int_equal(op(t, "next", 0)->end_ns, 150);
	assert_int_equal(loss_of(t, "nesting_repaired"), 0);
}

/* The end of an op that an exception left is known too late: after its parent's end, and after the
 * start of the next op. */
static void test_exception(void **state)
{
	struct events *e = *state;
	const struct timeline *t;

	events__op(e, (struct event_op){.name = "mm",
					.start_ns = 120,
					.end_ns = 300,
					.instance = T + 3,
					.parent = T + 2,
					.flags = GP_OP_EXCEPTION});
	events__op(e, (struct event_op){.name = "matmul",
					.start_ns = 110,
					.end_ns = 300,
					.instance = T + 2,
					.parent = T + 1,
					.flags = GP_OP_EXCEPTION});
	events__op(e, (struct event_op){.name = "add",
					.start_ns = 150,
					.end_ns = 160,
					.instance = T + 4,
					.parent = T + 1});
	events__op(e, (struct event_op){
			      .name = "step", .start_ns = 100, .end_ns = 200, .instance = T + 1});
	events__op(e, (struct event_op){.name = "last",
					.start_ns = 250,
					.end_ns = 400,
					.instance = T + 5,
					.flags = GP_OP_EXCEPTION});
	events__op(e, (struct event_op){
			      .name = "root", .start_ns = 300, .end_ns = 310, .instance = T + 6});
	t = events__timeline(e);
	assert_int_equal(op(t, "mm", 0)->end_ns, 150);
	assert_int_equal(op(t, "matmul", 0)->end_ns, 150);
	assert_string_equal(parent_of(t, "mm", 0), "matmul");
	assert_string_equal(parent_of(t, "add", 0), "step");
	assert_int_equal(op(t, "step", 0)->self_ns, 50);
	assert_int_equal(op(t, "last", 0)->end_ns, 300);
	assert_string_equal(parent_of(t, "root", 0), "");
	assert_int_equal(loss_of(t, "nesting_repaired"), 0);
	assert_int_equal(loss_of(t, "parent_missing"), 0);
}

/* Without siblings after it, an exception's bound ends with the parent. */
static void test_exception_clipped_to_parent(void **state)
{
	struct events *e = *state;
	const struct timeline *t;

	events__op(e, (struct event_op){.name = "mm",
					.start_ns = 120,
					.end_ns = 900,
					.instance = T + 2,
					.parent = T + 1,
					.flags = GP_OP_EXCEPTION});
	events__op(e, (struct event_op){
			      .name = "step", .start_ns = 100, .end_ns = 200, .instance = T + 1});
	t = events__timeline(e);
	assert_int_equal(op(t, "mm", 0)->end_ns, 200);
	assert_int_equal(op(t, "step", 0)->self_ns, 20);
	assert_int_equal(loss_of(t, "nesting_repaired"), 0);
}

static void test_recursion(void **state)
{
	struct events *e = *state;
	const struct timeline *t;

	for (uint64_t i = 1; i <= GP_OP_DEPTH; i++)
		events__op(e, (struct event_op){.name = "aten::f",
						.start_ns = 100 + i,
						.end_ns = 1000 - i,
						.instance = T + i,
						.parent = i > 1 ? T + i - 1 : 0});
	t = events__timeline(e);
	for (uint32_t i = 0; i < GP_OP_DEPTH; i++) {
		assert_int_equal(t->ops.items[i].depth, i);
		assert_int_equal(t->ops.items[i].collapsed, i > 0);
	}
}

/* A lost parent: the op it stood in takes the child, by time. */
static void test_parent_missing(void **state)
{
	struct events *e = *state;
	const struct timeline *t;

	events__op(e, (struct event_op){.name = "child",
					.start_ns = 120,
					.end_ns = 130,
					.instance = T + 3,
					.parent = T + 2});
	events__op(e, (struct event_op){
			      .name = "a", .start_ns = 100, .end_ns = 200, .instance = T + 1});
	events__op(e, (struct event_op){.name = "alone",
					.start_ns = 300,
					.end_ns = 400,
					.instance = T + 6,
					.parent = T + 5});
	t = events__timeline(e);
	assert_string_equal(parent_of(t, "child", 0), "a");
	assert_string_equal(parent_of(t, "alone", 0), "");
	assert_int_equal(loss_of(t, "parent_missing"), 2);
}

/* Without instances all goes by containment, longer ones first at equal starts. */
static void test_containment(void **state)
{
	struct events *e = *state;
	const struct timeline *t;

	events__op(e, (struct event_op){.name = "in", .start_ns = 100, .end_ns = 150});
	events__op(e, (struct event_op){.name = "out", .start_ns = 100, .end_ns = 200});
	events__op(e, (struct event_op){.name = "touches", .start_ns = 200, .end_ns = 250});
	events__op(e, (struct event_op){.name = "crosses", .start_ns = 240, .end_ns = 300});
	t = events__timeline(e);
	assert_string_equal(parent_of(t, "in", 0), "out");
	assert_string_equal(parent_of(t, "touches", 0), "");
	assert_int_equal(op(t, "crosses", 0)->end_ns, 250);
	assert_int_equal(loss_of(t, "nesting_repaired"), 1);
}

static void test_threads(void **state)
{
	struct events *e = *state;
	const struct timeline *t;

	events__process(e, 1, 4243, "worker");
	events__thread(e, 7, "pt_autograd_0");
	/* The same tid in another process, the same times everywhere. */
	events__op(
		e,
		(struct event_op){
			.name = "a", .tid = 7, .start_ns = 100, .end_ns = 200, .instance = T + 1});
	events__op(e, (struct event_op){.name = "b",
					.tid = 8,
					.start_ns = 110,
					.end_ns = 120,
					.instance = 2 * T + 1,
					.parent = T + 1});
	events__op(e, (struct event_op){.name = "c",
					.tid = 7,
					.process = 1,
					.start_ns = 110,
					.end_ns = 120,
					.instance = 3 * T + 1});
	events__op(e, (struct event_op){.name = "d",
					.tid = 9,
					.process = 5,
					.start_ns = 1,
					.end_ns = 2,
					.instance = 4 * T + 1});
	t = events__timeline(e);
	assert_int_equal(t->threads.nr, 4);
	assert_string_equal(t->threads.items[op(t, "a", 0)->thread].comm, "pt_autograd_0");
	assert_string_equal(parent_of(t, "b", 0), "");
	assert_string_equal(parent_of(t, "c", 0), "");
	assert_int_equal(t->processes.items[t->threads.items[op(t, "c", 0)->thread].process].pid,
			 4243);
	assert_int_equal(loss_of(t, "parent_missing"), 1);
	assert_int_equal(loss_of(t, "process_unknown"), 1);
}

static void test_async(void **state)
{
	struct events *e = *state;
	const struct timeline *t;

	events__op(e, (struct event_op){.name = "async",
					.start_ns = 90,
					.end_ns = 150,
					.instance = T + 1,
					.flags = GP_OP_ASYNC});
	events__op(e, (struct event_op){
			      .name = "a", .start_ns = 100, .end_ns = 200, .instance = T + 2});
	t = events__timeline(e);
	assert_string_equal(parent_of(t, "a", 0), "");
	assert_int_equal(op(t, "async", 0)->self_ns, 0);
	assert_int_equal(op(t, "async", 0)->end_ns, 150);
}

static void test_collapse(void **state)
{
	struct events *e = *state;
	const struct timeline *t;

	/* f > f > f > {g, g}: one f stays. h > {h, h}: all stay. */
	events__op(e, (struct event_op){
			      .name = "f", .start_ns = 100, .end_ns = 200, .instance = T + 1});
	events__op(e, (struct event_op){.name = "f",
					.start_ns = 110,
					.end_ns = 190,
					.instance = T + 2,
					.parent = T + 1});
	events__op(e, (struct event_op){.name = "f",
					.overload = "out",
					.start_ns = 120,
					.end_ns = 180,
					.instance = T + 3,
					.parent = T + 2});
	events__op(e, (struct event_op){.name = "g",
					.start_ns = 130,
					.end_ns = 140,
					.instance = T + 4,
					.parent = T + 3});
	events__op(e, (struct event_op){.name = "g",
					.start_ns = 140,
					.end_ns = 150,
					.instance = T + 5,
					.parent = T + 3});
	events__op(e, (struct event_op){
			      .name = "h", .start_ns = 300, .end_ns = 400, .instance = T + 6});
	events__op(e, (struct event_op){.name = "h",
					.start_ns = 310,
					.end_ns = 320,
					.instance = T + 7,
					.parent = T + 6});
	events__op(e, (struct event_op){.name = "h",
					.start_ns = 320,
					.end_ns = 330,
					.instance = T + 8,
					.parent = T + 6});
	/* A name that is left out hides neither a child nor a parent. */
	events__op(e, (struct event_op){
			      .name = "k", .start_ns = 500, .end_ns = 600, .instance = T + 9});
	events__op(e, (struct event_op){.name = "aten::is_leaf",
					.start_ns = 510,
					.end_ns = 520,
					.instance = T + 10,
					.parent = T + 9});
	events__op(e, (struct event_op){.name = "aten::_version",
					.start_ns = 530,
					.end_ns = 590,
					.instance = T + 11,
					.parent = T + 9});
	events__op(e, (struct event_op){.name = "k",
					.start_ns = 540,
					.end_ns = 580,
					.instance = T + 12,
					.parent = T + 11});
	t = events__timeline(e);
	assert_false(op(t, "f", 0)->collapsed);
	assert_true(op(t, "f", 1)->collapsed);
	assert_true(op(t, "f", 2)->collapsed);
	assert_false(op(t, "g", 0)->collapsed);
	assert_false(op(t, "h", 0)->collapsed);
	assert_false(op(t, "h", 1)->collapsed);
	assert_false(op(t, "h", 2)->collapsed);
	assert_true(op(t, "aten::is_leaf", 0)->unlisted);
	assert_true(op(t, "k", 1)->collapsed);
}

static void test_hostile(void **state)
{
	struct events *e = *state;
	const struct timeline *t;

	events__op(e, (struct event_op){.name = "backwards", .start_ns = 200, .end_ns = 100});
	events__op(e, (struct event_op){.name = "late", .start_ns = 1, .end_ns = UINT64_MAX});
	events__op(e, (struct event_op){.name = "own parent",
					.start_ns = 10,
					.end_ns = 20,
					.instance = T + 1,
					.parent = T + 1});
	events__op(e, (struct event_op){.name = "x",
					.start_ns = 30,
					.end_ns = 40,
					.instance = T + 2,
					.parent = T + 3});
	events__op(e, (struct event_op){.name = "y",
					.start_ns = 30,
					.end_ns = 40,
					.instance = T + 3,
					.parent = T + 2});
	events__op(e, (struct event_op){
			      .name = "twin", .start_ns = 50, .end_ns = 60, .instance = T + 4});
	events__op(e, (struct event_op){
			      .name = "twin", .start_ns = 70, .end_ns = 80, .instance = T + 4});
	events__op(e, (struct event_op){.name = "after its parent",
					.start_ns = 300,
					.end_ns = 310,
					.instance = T + 6,
					.parent = T + 4});
	events__op(e, (struct event_op){.name = "longer than its parent",
					.start_ns = 405,
					.end_ns = 500,
					.instance = T + 8,
					.parent = T + 7});
	events__op(e, (struct event_op){
			      .name = "parent", .start_ns = 400, .end_ns = 450, .instance = T + 7});
	t = events__timeline(e);
	assert_int_equal(t->ops.nr, 8);
	assert_int_equal(loss_of(t, "time_invalid"), 2);
	assert_int_equal(loss_of(t, "instance_duplicate"), 1);
	assert_true(loss_of(t, "parent_missing") >= 2);
	assert_int_equal(loss_of(t, "nesting_repaired"), 2);
	assert_int_equal(op(t, "longer than its parent", 0)->end_ns, 450);
	assert_string_equal(parent_of(t, "after its parent", 0), "");
}

/* Events of any kind of nonsense: the promises hold, whatever comes. The generator is fixed. */
static void test_random(void **state)
{
	struct events *e = *state;
	uint64_t x = 88172645463325252ULL;
	uint64_t r[6];

	for (int i = 0; i < 20000; i++) {
		for (size_t k = 0; k < 6; k++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			r[k] = x >> 20;
		}
		if (i % 4 == 3) {
			events__memory(e, (struct event_memory){
						  .time_ns = r[0] % 5000,
						  .instance = T + r[1] % 3000,
						  .address = r[2] % 50,
						  .bytes = (int64_t)(r[3] % 9) - 4,
						  .tid = 1 + r[4] % 3,
						  .flags = r[5] % 16,
						  .device_type = r[5] % 3,
					  });
			continue;
		}
		events__op(e, (struct event_op){
				      .name = r[0] % 2 ? "f" : "aten::is_leaf",
				      .start_ns = r[1] % 5000,
				      .end_ns = r[1] % 5000 + r[2] % (i % 3 ? 40 : 3000),
				      .instance = r[3] % 5 ? T + r[3] % 3000 : 0,
				      .parent = r[4] % 3 ? T + r[4] % 3000 : 0,
				      .tid = 1 + r[5] % 3,
				      .flags = r[5] % 8,
			      });
	}
	assert_int_equal(events__timeline(e)->ops.nr, 15000);
}

/* Nested a hundred thousand deep: no recursion, no quadratic search. */
static void test_deep(void **state)
{
	struct events *e = *state;
	const uint64_t nr = 100000;
	const struct timeline *t;

	for (uint64_t i = 0; i < nr; i++) {
		events__op(e, (struct event_op){.name = "f",
						.start_ns = i,
						.end_ns = 3 * nr - i,
						.instance = T + i + 1,
						.parent = 7});
		events__memory(e,
			       (struct event_memory){
				       .time_ns = 4 * nr, .instance = 9, .address = i, .bytes = 1});
	}
	t = events__timeline(e);
	assert_int_equal(t->ops.items[nr - 1].depth, nr - 1);
	assert_int_equal(loss_of(t, "memory_op_missing"), nr);
}

static void test_window(void **state)
{
	struct events *e = *state;
	const struct timeline *t;

	events__window(e, 5000, 9000, 1700000000000005000ULL);
	events__loss(e, "ring_full", 7);
	events__loss(e, "of_a_later_version", 3);
	events__op(e, (struct event_op){.name = "a", .start_ns = 6000, .end_ns = 7000});
	t = events__timeline(e);
	assert_int_equal(t->start_ns, 5000);
	assert_int_equal(t->end_ns, 9000);
	assert_int_equal(t->realtime_offset_ns, 1700000000000000000ULL);
	assert_int_equal(loss_of(t, "ring_full"), 7);
	assert_int_equal(loss_of(t, "of_a_later_version"), 3);
}

static void test_empty(void **state)
{
	const struct timeline *t = events__timeline(*state);

	assert_int_equal(t->ops.nr, 0);
	assert_int_equal(t->memory.nr, 0);
	assert_int_equal(t->processes.nr, 1);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_tree),	CASE(test_same_times),
		CASE(test_exception),	CASE(test_exception_clipped_to_parent),
		CASE(test_recursion),	CASE(test_parent_missing),
		CASE(test_containment), CASE(test_threads),
		CASE(test_async),	CASE(test_collapse),
		CASE(test_hostile),	CASE(test_random),
		CASE(test_deep),	CASE(test_window),
		CASE(test_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
