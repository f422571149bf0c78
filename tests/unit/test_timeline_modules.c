/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Calls of modules: which ops are in them, how they are numbered, and what the table adds up.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "events.h"
#include "outputs.h"

#define T (1ULL << 32) /* instances of the first thread */

static void op(struct events *e, uint64_t instance, uint64_t start_ns, uint64_t end_ns,
	       uint64_t parent)
{
	events__op(e, (struct event_op){.name = parent ? "inner" : "op",
					.instance = T + instance,
					.parent = parent ? T + parent : 0,
					.start_ns = start_ns,
					.end_ns = end_ns});
}

static void call(struct events *e, const char *type, uint64_t object, uint32_t depth,
		 uint64_t first, uint64_t last, uint64_t start_ns, uint64_t end_ns)
{
	events__module_call(e, type,
			    &(struct gp_ev_module_call){.head.time_ns = end_ns,
							.start_ns = start_ns,
							.object = object,
							.depth = depth,
							.first = T + first,
							.last = T + last});
}

/* Net(Linear, Linear), then the second Linear alone. */
static const struct timeline *example(struct events *e)
{
	op(e, 1, 0, 10, 0);
	op(e, 3, 22, 28, 2);
	op(e, 2, 20, 30, 0);
	op(e, 4, 40, 45, 0);
	op(e, 5, 50, 60, 0);
	op(e, 6, 70, 80, 0);
	op(e, 7, 90, 95, 0);
	call(e, "Linear", 0x20, 1, 2, 3, 20, 30);
	call(e, "Linear", 0x30, 1, 5, 5, 50, 60);
	call(e, "Net", 0x10, 0, 2, 5, 20, 60);
	call(e, "Linear", 0x30, 0, 6, 6, 70, 80);
	return events__timeline(e);
}

static void test_ops_are_in_their_calls(void **state)
{
	const struct timeline *t = example(*state);
	static const uint32_t wanted[] = {TL_NONE, 1, 1, 0, 2, 3, TL_NONE};

	assert_int_equal(t->module_calls.nr, 4);
	assert_int_equal(t->modules.nr, 3);
	assert_string_equal(t->modules.items[0].name, "nn.Module: Net_0");
	assert_string_equal(t->modules.items[1].name, "nn.Module: Linear_0");
	assert_string_equal(t->modules.items[2].name, "nn.Module: Linear_1");
	assert_int_equal(t->module_calls.items[0].parent, TL_NONE);
	assert_int_equal(t->module_calls.items[1].parent, 0);
	assert_int_equal(t->module_calls.items[2].parent, 0);
	assert_int_equal(t->module_calls.items[3].parent, TL_NONE);
	assert_int_equal(t->module_calls.items[3].module, 2);
	for (size_t i = 0; i < 7; i++)
		assert_int_equal(t->ops.items[i].module_call, wanted[i]);
	assert_int_equal(loss_of(t, "module_calls_invalid"), 0);
}

static void check_row(const struct table_row *r, const char *name, uint32_t depth, uint64_t calls,
		      uint64_t self_ns, uint64_t total_ns)
{
	assert_string_equal(r->name, name);
	assert_int_equal(r->depth, depth);
	assert_int_equal(r->calls, calls);
	assert_int_equal(r->self_cpu_ns, self_ns);
	assert_int_equal(r->cpu_total_ns, total_ns);
}

static void test_table(void **state)
{
	const struct timeline *t = example(*state);
	struct table_options options = {.by_module = true};
	struct table *table;

	table = table_of(t, options);
	assert_int_equal(table->rows.nr, 4);
	check_row(&table->rows.items[0], "nn.Module: Net_0", 0, 1, 5, 25);
	check_row(&table->rows.items[1], "nn.Module: Linear_0", 0, 1, 10, 10);
	check_row(&table->rows.items[2], "nn.Module: Linear_1", 0, 2, 20, 20);
	check_row(&table->rows.items[3], "[no module]", 0, 2, 15, 15);
	table__free(table);
	options.tree = true;
	table = table_of(t, options);
	assert_int_equal(table->rows.nr, 5);
	check_row(&table->rows.items[0], "nn.Module: Net_0", 0, 1, 5, 25);
	check_row(&table->rows.items[1], "nn.Module: Linear_0", 1, 1, 10, 10);
	check_row(&table->rows.items[2], "nn.Module: Linear_1", 1, 1, 10, 10);
	check_row(&table->rows.items[3], "nn.Module: Linear_1", 0, 1, 10, 10);
	check_row(&table->rows.items[4], "[no module]", 0, 2, 15, 15);
	table__free(table);
}

static void test_backward(void **state)
{
	struct events *e = *state;
	struct table *table;

	events__op(e, (struct event_op){.name = "aten::linear",
					.instance = T + 1,
					.start_ns = 10,
					.end_ns = 20,
					.sequence_nr = 8,
					.thread_number = 1});
	events__op(e, (struct event_op){.name = "node",
					.instance = 2 * T + 1,
					.start_ns = 30,
					.end_ns = 50,
					.tid = 101,
					.sequence_nr = 8,
					.forward_thread = 1,
					.scope = GP_SCOPE_BACKWARD});
	call(e, "Linear", 0x20, 0, 1, 1, 10, 20);
	table = table_of(events__timeline(e), (struct table_options){.by_module = true});
	assert_int_equal(table->rows.nr, 3);
	check_row(&table->rows.items[0], "nn.Module: Linear_0", 0, 1, 10, 10);
	check_row(&table->rows.items[1], "nn.Module: Linear_0 [backward]", 0, 1, 20, 20);
	check_row(&table->rows.items[2], "[no module]", 0, 0, 0, 0);
	table__free(table);
}

/* Operators that are in no table, as none that is listed is around them, are in none of modules. */
static void test_totals_are_those_of_operators(void **state)
{
	struct events *e = *state;
	const struct timeline *t;
	struct table *table;

	events__op(e, (struct event_op){.name = "aten::_version",
					.instance = T + 1,
					.start_ns = 0,
					.end_ns = 50});
	events__op(e, (struct event_op){.name = "aten::relu",
					.instance = T + 2,
					.parent = T + 1,
					.start_ns = 10,
					.end_ns = 20});
	events__op(e, (struct event_op){.name = "aten::is_leaf",
					.instance = T + 3,
					.start_ns = 60,
					.end_ns = 67});
	call(e, "Linear", 0x20, 0, 3, 3, 60, 67);
	t = events__timeline(e);
	table = table_of(t, (struct table_options){0});
	assert_int_equal(table->rows.nr, 1);
	assert_int_equal(table->self_cpu_total_ns, 10);
	table__free(table);
	table = table_of(t, (struct table_options){.by_module = true});
	assert_int_equal(table->rows.nr, 2);
	check_row(&table->rows.items[0], "nn.Module: Linear_0", 0, 1, 0, 0);
	check_row(&table->rows.items[1], "[no module]", 0, 1, 10, 10);
	assert_int_equal(table->self_cpu_total_ns, 10);
	table__free(table);
}

static void test_hostile(void **state)
{
	struct events *e = *state;
	const struct timeline *t;

	op(e, 1, 0, 10, 0);
	op(e, 2, 20, 30, 0);
	op(e, 3, 40, 50, 0);
	call(e, "Good", 1, 0, 1, 2, 0, 30);
	call(e, "Crossing", 2, 0, 2, 3, 20, 50);
	call(e, "Backwards", 3, 0, 1, 1, 10, 0);
	call(e, "Empty", 4, 0, 3, 2, 0, 10);
	call(e, "Outside in time", 5, 1, 1, 1, 0, 40);
	call(e, "Deep", 6, GP_MODULE_DEPTH, 3, 3, 40, 50);
	t = events__timeline(e);
	assert_int_equal(t->module_calls.nr, 1);
	assert_int_equal(loss_of(t, "module_calls_invalid"), 5);
	assert_int_equal(t->ops.items[1].module_call, 0);
	assert_int_equal(t->ops.items[2].module_call, TL_NONE);
}

/* Its number says that it is in the call, its times that it is not. */
static void test_an_op_beyond_its_call(void **state)
{
	struct events *e = *state;
	const struct timeline *t;

	op(e, 1, 0, 10, 0);
	op(e, 2, 20, 35, 0);
	call(e, "Inner", 2, 1, 2, 2, 20, 30);
	call(e, "Outer", 1, 0, 1, 2, 0, 40);
	t = events__timeline(e);
	assert_int_equal(t->ops.items[0].module_call, 0);
	assert_int_equal(t->ops.items[1].module_call, 0);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, events_setup, events_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_ops_are_in_their_calls),
		CASE(test_table),
		CASE(test_backward),
		CASE(test_totals_are_those_of_operators),
		CASE(test_hostile),
		CASE(test_an_op_beyond_its_call),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
