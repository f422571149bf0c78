/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Nesting of ops: by instance, by containment, with exceptions, on several threads.
 * check_timeline() runs on every timeline that is built.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "events.h"

#define T (1ULL << 32) /* instances of the first thread */

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
	assert_string_equal(parent_name(t, "a", 0), "");
	assert_string_equal(parent_name(t, "b", 0), "a");
	assert_string_equal(parent_name(t, "c", 0), "b");
	assert_string_equal(parent_name(t, "d", 0), "a");
	assert_string_equal(parent_name(t, "e", 0), "");
	assert_int_equal(op_named(t, "a", 0)->self_ns, 60);
	assert_int_equal(op_named(t, "b", 0)->self_ns, 20);
	assert_int_equal(op_named(t, "c", 0)->depth, 2);
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
	assert_string_equal(parent_name(t, "in", 0), "out");
	assert_string_equal(parent_name(t, "next", 0), "");
	assert_int_equal(op_named(t, "next", 0)->end_ns, 150);
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
	assert_int_equal(op_named(t, "mm", 0)->end_ns, 150);
	assert_int_equal(op_named(t, "matmul", 0)->end_ns, 150);
	assert_string_equal(parent_name(t, "mm", 0), "matmul");
	assert_string_equal(parent_name(t, "add", 0), "step");
	assert_int_equal(op_named(t, "step", 0)->self_ns, 50);
	assert_int_equal(op_named(t, "last", 0)->end_ns, 300);
	assert_string_equal(parent_name(t, "root", 0), "");
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
	assert_int_equal(op_named(t, "mm", 0)->end_ns, 200);
	assert_int_equal(op_named(t, "step", 0)->self_ns, 20);
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

/* A lost parent: the op it stood in takes the child, by time. That it was lost shows in what came
 * after it. */
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
	events__op(e, (struct event_op){
			      .name = "next", .start_ns = 500, .end_ns = 600, .instance = T + 7});
	t = events__timeline(e);
	assert_string_equal(parent_name(t, "child", 0), "a");
	assert_string_equal(parent_name(t, "alone", 0), "");
	assert_int_equal(loss_of(t, "parent_missing"), 2);
}

/* A parent that was still open at the end has no event, and is no loss. */
static void test_parent_open_at_end(void **state)
{
	struct events *e = *state;
	const struct timeline *t;

	events__op(e, (struct event_op){
			      .name = "before", .start_ns = 100, .end_ns = 200, .instance = T + 1});
	events__op(e, (struct event_op){.name = "first",
					.start_ns = 300,
					.end_ns = 310,
					.instance = T + 4,
					.parent = T + 3});
	events__op(e, (struct event_op){.name = "second",
					.start_ns = 320,
					.end_ns = 330,
					.instance = T + 5,
					.parent = T + 2});
	events__memory(e, (struct event_memory){
				  .time_ns = 340, .instance = T + 2, .address = 1, .bytes = 8});
	/* Another thread goes on. */
	events__op(e, (struct event_op){.name = "other",
					.tid = 7,
					.start_ns = 500,
					.end_ns = 600,
					.instance = 2 * T + 1});
	t = events__timeline(e);
	assert_string_equal(parent_name(t, "first", 0), "");
	assert_string_equal(parent_name(t, "second", 0), "");
	/* T + 3 ended, as T + 2 got another child after it; T + 2 did not. */
	assert_int_equal(loss_of(t, "parent_missing"), 1);
	assert_int_equal(loss_of(t, "memory_op_missing"), 0);
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
	assert_string_equal(parent_name(t, "in", 0), "out");
	assert_string_equal(parent_name(t, "touches", 0), "");
	assert_int_equal(op_named(t, "crosses", 0)->end_ns, 250);
	assert_int_equal(loss_of(t, "nesting_repaired"), 1);
}

/* Ops by probe and ops by callback, interleaved on one thread: each names parents of its own kind
 * alone. */
static void test_two_sources(void **state)
{
	const uint64_t c = 1ULL << 63;
	struct events *e = *state;
	const struct timeline *t;

	events__op(e, (struct event_op){.name = "callback",
					.start_ns = 100,
					.end_ns = 200,
					.instance = c + 1,
					.flags = GP_OP_CALLBACK});
	events__op(e, (struct event_op){
			      .name = "probe", .start_ns = 110, .end_ns = 190, .instance = T + 1});
	events__op(e, (struct event_op){.name = "callback in probe",
					.start_ns = 120,
					.end_ns = 150,
					.instance = c + 2,
					.parent = c + 1,
					.flags = GP_OP_CALLBACK});
	events__op(e, (struct event_op){.name = "probe in callback",
					.start_ns = 130,
					.end_ns = 140,
					.instance = T + 2,
					.parent = T + 1});
	events__op(e, (struct event_op){.name = "last",
					.start_ns = 192,
					.end_ns = 195,
					.instance = c + 3,
					.parent = c + 1,
					.flags = GP_OP_CALLBACK});
	t = events__timeline(e);
	assert_string_equal(parent_name(t, "probe", 0), "callback");
	assert_string_equal(parent_name(t, "callback in probe", 0), "probe");
	assert_string_equal(parent_name(t, "probe in callback", 0), "callback in probe");
	assert_string_equal(parent_name(t, "last", 0), "callback");
	assert_int_equal(op_named(t, "probe", 0)->end_ns, 190);
	assert_int_equal(loss_of(t, "nesting_repaired"), 0);
	assert_int_equal(loss_of(t, "parent_missing"), 0);
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
	assert_string_equal(t->threads.items[op_named(t, "a", 0)->thread].comm, "pt_autograd_0");
	assert_string_equal(parent_name(t, "b", 0), "");
	assert_string_equal(parent_name(t, "c", 0), "");
	assert_int_equal(
		t->processes.items[t->threads.items[op_named(t, "c", 0)->thread].process].pid,
		4243);
	assert_int_equal(loss_of(t, "parent_missing"), 1);
	assert_int_equal(loss_of(t, "process_unknown"), 1);
	assert_true(t->processes.items[t->threads.items[op_named(t, "d", 0)->thread].process].pid <
		    0);
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
	events__op(e, (struct event_op){.name = "a",
					.start_ns = 100,
					.end_ns = 200,
					.instance = T + 2,
					.parent = T + 1});
	events__op(e, (struct event_op){
			      .name = "b", .start_ns = 210, .end_ns = 220, .instance = T + 3});
	t = events__timeline(e);
	assert_string_equal(parent_name(t, "a", 0), "");
	assert_int_equal(op_named(t, "async", 0)->self_ns, 0);
	assert_int_equal(op_named(t, "async", 0)->end_ns, 150);
	/* It holds nothing, but it is there. */
	assert_int_equal(loss_of(t, "parent_missing"), 0);
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
	t = events__timeline(e);
	assert_false(op_named(t, "f", 0)->collapsed);
	assert_true(op_named(t, "f", 1)->collapsed);
	assert_true(op_named(t, "f", 2)->collapsed);
	assert_false(op_named(t, "g", 0)->collapsed);
	assert_false(op_named(t, "h", 0)->collapsed);
	assert_false(op_named(t, "h", 1)->collapsed);
	assert_false(op_named(t, "h", 2)->collapsed);
}

/* A name that is left out hides neither a child nor a parent. */
static void test_collapse_around_unlisted(void **state)
{
	struct events *e = *state;
	const struct timeline *t;

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
	assert_true(op_named(t, "aten::is_leaf", 0)->unlisted);
	assert_true(op_named(t, "k", 1)->collapsed);
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

#define CASE(f) cmocka_unit_test_setup_teardown(f, events_setup, events_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_tree),
		CASE(test_same_times),
		CASE(test_exception),
		CASE(test_exception_clipped_to_parent),
		CASE(test_recursion),
		CASE(test_parent_missing),
		CASE(test_parent_open_at_end),
		CASE(test_containment),
		CASE(test_two_sources),
		CASE(test_threads),
		CASE(test_async),
		CASE(test_collapse),
		CASE(test_collapse_around_unlisted),
		CASE(test_window),
		CASE(test_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
