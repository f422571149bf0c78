/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Steps from annotations and from cycles, and the ops that stand for them. check_timeline() runs on
 * every timeline that is built.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "events.h"
#include "outputs.h"

#define T     (1ULL << 32)
#define ADAM  "Optimizer.step#Adam.step"
#define LOAD  "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
#define FIRST 1000

static uint64_t instance_nr;

static int setup(void **state)
{
	*state = events__new();
	instance_nr = 0;
	return 0;
}

static uint64_t op(struct events *e, const char *name, uint64_t start_ns, uint64_t end_ns,
		   uint64_t parent)
{
	bool user = strchr(name, '#') || !strncmp(name, "ann", 3);

	events__op(e, (struct event_op){.name = name,
					.start_ns = start_ns,
					.end_ns = end_ns,
					.instance = T + ++instance_nr,
					.parent = parent,
					.flags = GP_OP_CALLBACK,
					.scope = user ? GP_SCOPE_USER : GP_SCOPE_FUNCTION});
	return T + instance_nr;
}

/* Steps of 100 ns, the last op of each from 70 to 90. */
static void train(struct events *e, unsigned int nr, const char *marker, uint64_t parent)
{
	for (unsigned int i = 0; i < nr; i++) {
		uint64_t at = FIRST + i * 100;

		op(e, "aten::mm", at + 10, at + 30, parent);
		op(e, marker, at + 70, at + 90, parent);
	}
}

static const struct tl_step_series *only_series(const struct timeline *t)
{
	assert_int_equal(t->step_series.nr, 1);
	return &t->step_series.items[0];
}

static void expect_step(const struct timeline *t, uint32_t nth, uint64_t start_ns, uint64_t end_ns)
{
	assert_true(nth < t->steps.nr);
	assert_int_equal(t->steps.items[nth].start_ns, start_ns);
	assert_int_equal(t->steps.items[nth].end_ns, end_ns);
}

static void test_optimizer(void **state)
{
	const struct tl_step_series *s;
	const struct timeline *t;

	train(*state, 4, ADAM, 0);
	t = events__timeline(*state);
	s = only_series(t);
	assert_int_equal(s->by, TL_STEPS_OPTIMIZER);
	assert_string_equal(s->marker, ADAM);
	assert_int_equal(s->nr, 3);
	expect_step(t, 0, FIRST + 90, FIRST + 190);
	expect_step(t, 2, FIRST + 290, FIRST + 390);
	assert_int_equal(t->steps.items[2].number, 2);
	/* Known, not shown. */
	assert_int_equal(t->steps.items[0].op, TL_NONE);
	assert_int_equal(find_op(t, "ProfilerStep#0", 0), TL_NONE);
}

/* Made by steps: it begins where a step does, and the first has this number. */
static void test_shown(void **state)
{
	const struct tl_op *step;
	const struct timeline *t;

	events__meta(*state, "steps", "5");
	events__window(*state, FIRST, FIRST + 400, 0);
	train(*state, 3, ADAM, 0);
	events__memory(*state,
		       (struct event_memory){.time_ns = FIRST + 50, .address = 64, .bytes = 8});
	/* What came before the window tells how much is freed in it, and nothing else. */
	op(*state, "aten::mm", FIRST - 50, FIRST - 40, 0);
	events__memory(*state,
		       (struct event_memory){.time_ns = FIRST - 45, .address = 128, .bytes = 100});
	events__memory(*state,
		       (struct event_memory){.time_ns = FIRST + 60,
					     .address = 128,
					     .flags = GP_MEMORY_FREE | GP_MEMORY_SIZE_UNKNOWN});
	t = events__timeline(*state);
	assert_int_equal(t->memory.nr, 2);
	assert_int_equal(t->memory.items[1].bytes, -100);
	assert_int_equal(find_op(t, "aten::mm", 3), TL_NONE);
	assert_int_equal(only_series(t)->nr, 3);
	expect_step(t, 0, FIRST, FIRST + 90);
	step = op_named(t, "ProfilerStep#5", 0);
	assert_int_equal(step->self_ns, 90 - 20 - 20);
	assert_int_equal(step->scope, GP_SCOPE_USER);
	assert_int_equal(timeline__op_sums(t, t->steps.items[0].op)->self_cpu_bytes, 8 - 100);
	assert_int_equal(&t->ops.items[t->steps.items[0].op] - step, 0);
	assert_string_equal(parent_name(t, "aten::mm", 2), "ProfilerStep#7");
	assert_string_equal(parent_name(t, ADAM, 0), "ProfilerStep#5");
	assert_int_equal(op_named(t, "aten::mm", 0)->depth, 1);
}

static void test_table_row(void **state)
{
	struct table *table;

	events__meta(*state, "steps", "0");
	events__window(*state, FIRST, FIRST + 400, 0);
	train(*state, 3, ADAM, 0);
	table = table_of(events__timeline(*state), (struct table_options){0});
	assert_string_equal(table->rows.items[0].name, "ProfilerStep*");
	assert_int_equal(table->rows.items[0].calls, 3);
	assert_int_equal(table->rows.items[0].cpu_total_ns, 290);
	assert_int_equal(table->rows.items[0].self_cpu_ns, 290 - 3 * 40);
	assert_int_equal(table->self_cpu_total_ns, 290);
	table__free(table);
}

/* An annotation around the step's end belongs to the step, one around all of them does not. */
static void test_within_annotations(void **state)
{
	struct events *e = *state;
	uint64_t epoch = T + 1000;
	const struct timeline *t;

	events__meta(e, "steps", "0");
	events__window(e, FIRST - 10, FIRST + 500, 0);
	for (unsigned int i = 0; i < 3; i++) {
		uint64_t at = FIRST + i * 100, around = T + 2000 + i;

		op(e, "aten::mm", at + 10, at + 30, epoch);
		op(e, ADAM, at + 70, at + 90, around);
		events__op(e, (struct event_op){.name = "ann around",
						.start_ns = at + 60,
						.end_ns = at + 95,
						.instance = around,
						.parent = epoch,
						.flags = GP_OP_CALLBACK,
						.scope = GP_SCOPE_USER});
	}
	events__op(e, (struct event_op){.name = "ann epoch",
					.start_ns = FIRST,
					.end_ns = FIRST + 400,
					.instance = epoch,
					.flags = GP_OP_CALLBACK,
					.scope = GP_SCOPE_USER});
	t = events__timeline(e);
	assert_int_equal(only_series(t)->nr, 3);
	expect_step(t, 0, FIRST, FIRST + 95);
	expect_step(t, 1, FIRST + 95, FIRST + 195);
	assert_string_equal(parent_name(t, "ProfilerStep#1", 0), "ann epoch");
	assert_string_equal(parent_name(t, "ann around", 1), "ProfilerStep#1");
	assert_string_equal(parent_name(t, ADAM, 1), "ann around");
	assert_int_equal(op_named(t, ADAM, 1)->depth, 3);
	assert_int_equal(op_named(t, "ann epoch", 0)->self_ns, 400 - 295);
}

/* One optimizer that runs twice for each run of the other is a part of the step. */
static void test_two_optimizers(void **state)
{
	struct events *e = *state;

	for (unsigned int i = 0; i < 3; i++) {
		uint64_t at = FIRST + i * 100;

		op(e, "Optimizer.step#SGD.step", at + 10, at + 20, 0);
		op(e, "Optimizer.step#SGD.step", at + 30, at + 40, 0);
		op(e, ADAM, at + 70, at + 90, 0);
	}
	assert_string_equal(only_series(events__timeline(e))->marker, ADAM);
}

/* The __next__ that only says that the epoch is over is no step. */
static void test_dataloader(void **state)
{
	struct events *e = *state;
	const struct timeline *t;

	for (unsigned int i = 0; i < 5; i++) {
		uint64_t at = FIRST + i * 100;

		if (i != 2)
			op(e, "aten::stack", at + 2, at + 8, T + 900 + i);
		events__op(e, (struct event_op){.name = LOAD,
						.start_ns = at,
						.end_ns = at + 10,
						.instance = T + 900 + i,
						.scope = GP_SCOPE_USER});
		op(e, "aten::mm", at + 20, at + 30, 0);
	}
	t = events__timeline(e);
	assert_int_equal(only_series(t)->by, TL_STEPS_DATALOADER);
	assert_int_equal(only_series(t)->nr, 3);
	expect_step(t, 0, FIRST, FIRST + 100);
	expect_step(t, 2, FIRST + 300, FIRST + 400);
}

/* What the program itself calls a step is one, whatever else there is. */
static void test_own_steps(void **state)
{
	struct events *e = *state;
	const struct timeline *t;

	for (unsigned int i = 0; i < 3; i++) {
		char name[32];
		uint64_t at = FIRST + i * 100;

		(void)snprintf(name, sizeof(name), "ProfilerStep#%u", i + 7);
		op(e, ADAM, at + 50, at + 60, T + 500 + i);
		events__op(e, (struct event_op){.name = name,
						.start_ns = at,
						.end_ns = at + 99,
						.instance = T + 500 + i,
						.scope = GP_SCOPE_USER});
	}
	events__meta(e, "steps", "0");
	t = events__timeline(e);
	assert_int_equal(only_series(t)->by, TL_STEPS_PROFILER);
	assert_int_equal(t->ops.nr, 6);
	assert_int_equal(t->steps.items[1].number, 8);
	assert_string_equal(t->ops.items[t->steps.items[1].op].name, "ProfilerStep#8");
	assert_int_equal(t->ops.items[t->steps.items[1].op].module_call, TL_NONE);
}

/* Inference: the cycle begins behind the pause. */
static void test_cycle(void **state)
{
	struct events *e = *state;
	const struct timeline *t;

	for (unsigned int i = 0; i < 5; i++) {
		uint64_t at = FIRST + i * 100;

		op(e, "aten::relu", at + 50, at + 60, 0);
		op(e, "aten::conv2d", at + 80, at + 90, 0);
		op(e, "aten::linear", at + 91, at + 99, 0);
	}
	t = events__timeline(e);
	assert_int_equal(only_series(t)->by, TL_STEPS_SEQUENCE);
	assert_int_equal(only_series(t)->cycle_nr, 3);
	assert_int_equal(only_series(t)->nr, 4);
	assert_null(only_series(t)->marker);
	expect_step(t, 0, FIRST + 50, FIRST + 150);
}

static void test_none(void **state)
{
	op(*state, "aten::mm", FIRST, FIRST + 10, 0);
	op(*state, "aten::relu", FIRST + 10, FIRST + 20, 0);
	op(*state, ADAM, FIRST + 30, FIRST + 40, 0);
	assert_int_equal(events__timeline(*state)->step_series.nr, 0);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, events_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_optimizer),	       CASE(test_shown),	  CASE(test_table_row),
		CASE(test_within_annotations), CASE(test_two_optimizers), CASE(test_dataloader),
		CASE(test_own_steps),	       CASE(test_cycle),	  CASE(test_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
