/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Events that cannot be true: counted, and what timeline.h promises still holds, which
 * check_timeline() looks at for every timeline that is built.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "events.h"

#define T (1ULL << 32) /* instances of the first thread */

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
	t = events__timeline(e);
	assert_int_equal(t->ops.nr, 5);
	assert_int_equal(loss_of(t, "time_invalid"), 2);
	assert_int_equal(loss_of(t, "instance_duplicate"), 1);
	assert_int_equal(loss_of(t, "parent_missing"), 2);
	assert_int_equal(loss_of(t, "nesting_repaired"), 0);
}

/* Children that their parents cannot have. */
static void test_impossible_children(void **state)
{
	struct events *e = *state;
	const struct timeline *t;

	events__op(e, (struct event_op){
			      .name = "over", .start_ns = 70, .end_ns = 80, .instance = T + 4});
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
	assert_int_equal(loss_of(t, "nesting_repaired"), 2);
	assert_int_equal(op_named(t, "longer than its parent", 0)->end_ns, 450);
	assert_string_equal(parent_name(t, "after its parent", 0), "");
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
				       .time_ns = 4 * nr, .instance = T, .address = i, .bytes = 1});
	}
	t = events__timeline(e);
	assert_int_equal(t->ops.items[nr - 1].depth, nr - 1);
	assert_int_equal(loss_of(t, "memory_op_missing"), nr);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, events_setup, events_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_hostile),
		CASE(test_impossible_children),
		CASE(test_random),
		CASE(test_deep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
