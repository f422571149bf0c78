/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Calls of Python functions from what ops share: where they begin and end, what is not shown, and
 * which are calls of modules.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "events.h"

#define T	(1ULL << 32) /* instances of the first thread */
#define MODULES "/x/torch/nn/modules/module.py"

enum { MAIN = 1, F = 2, G = 3, ENTER = 4, WRAPPED = 5, INNER = 6 };
/* Stacks: of main alone, of f in it, of g in that, ... */
enum { IN_MAIN = 1, IN_F = 2, IN_G = 3, IN_ENTER = 4, IN_MODULE = 5 };

static int setup(void **state)
{
	struct events *e = events__new();

	*state = e;
	events__frame(e, MAIN, "a.py", "main", 10);
	events__frame(e, F, "a.py", "f", 20);
	events__frame(e, G, "a.py", "g", 30);
	events__frame(e, ENTER, "b.py", "__enter__", 40);
	events__frame(e, WRAPPED, MODULES, "Module._wrapped_call_impl", 50);
	events__frame(e, INNER, MODULES, "Module._call_impl", 60);
	events__stack(e, IN_MAIN, (const uint32_t[]){MAIN}, 1);
	events__stack(e, IN_F, (const uint32_t[]){F, MAIN}, 2);
	events__stack(e, IN_G, (const uint32_t[]){G, F, MAIN}, 3);
	events__stack(e, IN_ENTER, (const uint32_t[]){ENTER, MAIN}, 2);
	events__stack(e, IN_MODULE, (const uint32_t[]){F, INNER, WRAPPED, G, INNER, WRAPPED, MAIN},
		      7);
	return 0;
}

static int teardown(void **state)
{
	events__free(*state);
	return 0;
}

/* `same`: calls that it shares with the one before it. */
static void op(struct events *e, uint64_t instance, uint32_t stack, uint32_t same,
	       uint64_t start_ns, uint64_t end_ns, uint64_t parent)
{
	events__op(e, (struct event_op){.name = "op",
					.flags = GP_OP_CALLBACK,
					.instance = T + instance,
					.parent = parent ? T + parent : 0,
					.stack_id = stack,
					.same_calls = same + 1,
					.start_ns = start_ns,
					.end_ns = end_ns});
}

static void annotation(struct events *e, uint64_t instance, uint32_t stack, uint32_t same,
		       uint64_t start_ns, uint64_t end_ns)
{
	events__op(e, (struct event_op){.name = "range",
					.scope = GP_SCOPE_USER,
					.flags = GP_OP_CALLBACK,
					.instance = T + instance,
					.stack_id = stack,
					.same_calls = same + 1,
					.start_ns = start_ns,
					.end_ns = end_ns});
}

static void check_call(const struct timeline *t, size_t i, uint32_t frame, uint32_t parent,
		       uint64_t start_ns, uint64_t end_ns)
{
	const struct tl_python_call *call = &t->python_calls.items[i];

	assert_true(i < t->python_calls.nr);
	assert_int_equal(call->frame, frame);
	assert_int_equal(call->parent, parent);
	assert_int_equal(call->start_ns, start_ns);
	assert_int_equal(call->end_ns, end_ns);
}

static void check_losses(const struct timeline *t, uint64_t unknown, uint64_t cut,
			 uint64_t crossing, uint64_t unplaced)
{
	assert_int_equal(loss_of(t, "python_calls_unknown"), unknown);
	assert_int_equal(loss_of(t, "python_calls_cut"), cut);
	assert_int_equal(loss_of(t, "python_calls_crossing"), crossing);
	assert_int_equal(loss_of(t, "python_calls_unplaced"), unplaced);
}

static void test_from_first_to_last(void **state)
{
	static const uint32_t of[] = {1, 2, 1, 3, 0};
	const struct timeline *t;

	op(*state, 1, IN_F, 0, 0, 10, 0);
	op(*state, 2, IN_G, 2, 20, 30, 0);
	op(*state, 3, IN_F, 2, 40, 50, 0);
	op(*state, 4, IN_F, 1, 60, 70, 0);
	op(*state, 5, IN_MAIN, 1, 80, 90, 0);
	t = events__timeline(*state);
	assert_int_equal(t->python_calls.nr, 4);
	check_call(t, 0, MAIN, TL_NONE, 0, 90);
	check_call(t, 1, F, 0, 0, 50);
	check_call(t, 2, G, 1, 20, 30);
	check_call(t, 3, F, 0, 60, 70);
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(t->ops.items[i].python_call, of[i]);
	check_losses(t, 0, 0, 0, 0);
}

/* What opens an annotation is over at once. */
static void test_annotations_make_no_call(void **state)
{
	const struct timeline *t;

	op(*state, 1, IN_MAIN, 0, 0, 5, 0);
	annotation(*state, 2, IN_ENTER, 1, 10, 50);
	op(*state, 3, IN_F, 1, 20, 30, 2);
	op(*state, 4, IN_F, 1, 60, 70, 0);
	t = events__timeline(*state);
	assert_int_equal(t->python_calls.nr, 3);
	check_call(t, 0, MAIN, TL_NONE, 0, 70);
	check_call(t, 1, F, 0, 20, 30);
	check_call(t, 2, F, 0, 60, 70);
	assert_int_equal(op_named(t, "range", 0)->python_call, 0);
	check_losses(t, 0, 0, 0, 0);
}

/* Up to PyTorch 1.13 that is operators, too. */
static void test_operators_before_an_annotation(void **state)
{
	const struct timeline *t;

	op(*state, 1, IN_ENTER, 0, 0, 5, 0);
	annotation(*state, 2, IN_ENTER, 2, 10, 50);
	op(*state, 3, IN_F, 1, 20, 30, 2);
	t = events__timeline(*state);
	assert_int_equal(t->python_calls.nr, 3);
	check_call(t, 0, MAIN, TL_NONE, 0, 50);
	check_call(t, 1, ENTER, 0, 0, 5);
	check_call(t, 2, F, 0, 20, 30);
	assert_int_equal(op_named(t, "range", 0)->python_call, 1);
	check_losses(t, 0, 0, 0, 0);
}

/* And then some in it. */
static void test_operators_behind_the_begin_of_an_annotation(void **state)
{
	const struct timeline *t;

	annotation(*state, 1, IN_ENTER, 0, 0, 50);
	op(*state, 2, IN_ENTER, 2, 10, 15, 1);
	op(*state, 3, IN_F, 1, 20, 30, 1);
	t = events__timeline(*state);
	assert_int_equal(t->python_calls.nr, 3);
	check_call(t, 0, MAIN, TL_NONE, 0, 50);
	check_call(t, 1, ENTER, 0, 10, 15);
	check_call(t, 2, F, 0, 20, 30);
	assert_int_equal(op_named(t, "range", 0)->python_call, 0);
	assert_int_equal(op_named(t, "op", 0)->python_call, 1);
	check_losses(t, 0, 0, 0, 0);
}

static void test_an_annotation_ends_in_its_call(void **state)
{
	const struct timeline *t;

	annotation(*state, 1, IN_F, 0, 0, 50);
	op(*state, 2, IN_G, 2, 10, 20, 1);
	op(*state, 3, IN_MAIN, 1, 60, 70, 0);
	t = events__timeline(*state);
	assert_int_equal(t->python_calls.nr, 3);
	check_call(t, 1, F, 0, 0, 50);
	check_call(t, 2, G, 1, 10, 20);
	check_losses(t, 0, 0, 0, 0);
}

static void test_what_an_annotation_outlives_is_not_shown(void **state)
{
	const struct timeline *t;

	op(*state, 1, IN_F, 0, 0, 5, 0);
	annotation(*state, 2, IN_F, 2, 10, 100);
	op(*state, 3, IN_G, 2, 20, 30, 2);
	op(*state, 4, IN_MAIN, 1, 40, 50, 2);
	t = events__timeline(*state);
	assert_int_equal(t->python_calls.nr, 2);
	check_call(t, 0, MAIN, TL_NONE, 0, 100);
	check_call(t, 1, G, 0, 20, 30);
	assert_int_equal(t->ops.items[0].python_call, 0);
	check_losses(t, 0, 0, 1, 0);
}

static void test_what_outlives_an_annotation_is_shown_in_pieces(void **state)
{
	const struct timeline *t;

	annotation(*state, 1, IN_MAIN, 0, 0, 50);
	op(*state, 2, IN_F, 1, 10, 20, 1);
	op(*state, 3, IN_F, 2, 60, 70, 0);
	t = events__timeline(*state);
	assert_int_equal(t->python_calls.nr, 3);
	check_call(t, 0, MAIN, TL_NONE, 0, 70);
	check_call(t, 1, F, 0, 10, 20);
	check_call(t, 2, F, 0, 60, 70);
	check_losses(t, 0, 1, 0, 0);
}

static void test_missing_ops(void **state)
{
	const struct timeline *t;

	op(*state, 1, IN_F, 0, 0, 10, 0);
	op(*state, 3, IN_F, 2, 20, 30, 0);
	events__op(*state, (struct event_op){.name = "op",
					     .flags = GP_OP_CALLBACK,
					     .instance = T + 4,
					     .stack_id = IN_F,
					     .start_ns = 40,
					     .end_ns = 50});
	op(*state, 5, IN_F, 0, 60, 70, 0);
	t = events__timeline(*state);
	assert_int_equal(t->python_calls.nr, 6);
	check_call(t, 1, F, 0, 0, 10);
	check_call(t, 3, F, 2, 20, 30);
	check_call(t, 5, F, 4, 60, 70);
	assert_int_equal(t->ops.items[2].python_call, TL_NONE);
	check_losses(t, 1, 1, 0, 0);
}

static void module_call(struct events *e, uint64_t object, uint32_t depth, uint64_t first,
			uint64_t last)
{
	events__module_call(e, depth ? "Linear" : "Net",
			    &(struct gp_ev_module_call){.head.time_ns = 20,
							.object = object,
							.depth = depth,
							.first = T + first,
							.last = T + last});
}

/* The outer one of the two functions behind Module.__call__. */
static void test_modules(void **state)
{
	static const uint32_t calls[] = {TL_NONE, 0, TL_NONE, TL_NONE, 1, TL_NONE, TL_NONE};
	const struct timeline *t;

	op(*state, 1, IN_MODULE, 0, 0, 20, 0);
	op(*state, 2, IN_MAIN, 1, 30, 40, 0);
	module_call(*state, 0x20, 1, 1, 1);
	module_call(*state, 0x10, 0, 1, 1);
	module_call(*state, 0x30, 0, 3, 3);
	t = events__timeline(*state);
	assert_int_equal(t->python_calls.nr, 7);
	for (size_t i = 0; i < 7; i++)
		assert_int_equal(t->python_calls.items[i].module_call, calls[i]);
	check_losses(t, 0, 0, 0, 1);
}

static void test_modules_alone(void **state)
{
	const struct timeline *t;

	events__op(*state,
		   (struct event_op){.name = "op", .instance = T + 1, .start_ns = 0, .end_ns = 20});
	module_call(*state, 0x20, 1, 1, 1);
	module_call(*state, 0x10, 0, 1, 1);
	t = events__timeline(*state);
	assert_int_equal(t->python_calls.nr, 2);
	check_call(t, 0, TL_NONE, TL_NONE, 0, 20);
	check_call(t, 1, TL_NONE, 0, 0, 20);
	assert_int_equal(t->python_calls.items[1].module_call, 1);
	assert_int_equal(t->ops.items[0].python_call, 1);
}

/* Shares that no stack has, and stacks that are none. */
static void test_hostile(void **state)
{
	const struct timeline *t;

	op(*state, 1, IN_MAIN, UINT32_MAX - 1, 0, 10, 0);
	op(*state, 2, 77, 3, 20, 30, 0);
	op(*state, 3, IN_G, 200, 40, 50, 0);
	op(*state, 4, IN_MAIN, 200, 60, 70, 0);
	t = events__timeline(*state);
	assert_int_equal(t->python_calls.nr, 4);
	check_call(t, 0, MAIN, TL_NONE, 0, 10);
	check_call(t, 1, MAIN, TL_NONE, 40, 70);
	check_losses(t, 1, 0, 0, 0);
}

static void collection(struct events *e, uint32_t tid, uint64_t start_ns, uint64_t end_ns)
{
	const struct gp_ev_python_gc gc = {
		.head = {.kind = GP_EV_PYTHON_GC, .tid = tid, .time_ns = end_ns},
		.start_ns = start_ns,
	};

	events__raw(e, &gc, sizeof(gc));
}

static uint64_t crossing_nr(const struct timeline *t)
{
	uint64_t nr = 0;

	for (size_t i = 0; i < t->python_gcs.nr; i++)
		nr += t->python_gcs.items[i].crossing;
	return nr;
}

/* G is a finalizer, whose operator is the last one of F. */
static void test_a_collection_at_the_end(void **state)
{
	const struct timeline *t;

	op(*state, 1, IN_F, 0, 0, 10, 0);
	op(*state, 2, IN_G, 2, 30, 40, 0);
	op(*state, 3, IN_MAIN, 1, 60, 70, 0);
	collection(*state, 100, 20, 50);
	/* Of other threads. */
	collection(*state, 99, 5, 45);
	collection(*state, 101, 35, 65);
	t = events__timeline(*state);
	assert_int_equal(t->python_calls.nr, 3);
	check_call(t, 0, MAIN, TL_NONE, 0, 70);
	check_call(t, 1, F, 0, 0, 50);
	check_call(t, 2, G, 1, 30, 40);
	assert_int_equal(t->python_gcs.nr, 3);
	assert_int_equal(crossing_nr(t), 0);
}

/* And the first one. */
static void test_a_collection_at_the_begin(void **state)
{
	const struct timeline *t;

	op(*state, 1, IN_MAIN, 0, 0, 10, 0);
	op(*state, 2, IN_G, 1, 30, 40, 0);
	op(*state, 3, IN_F, 2, 60, 70, 0);
	collection(*state, 100, 20, 50);
	t = events__timeline(*state);
	assert_int_equal(t->python_calls.nr, 3);
	check_call(t, 0, MAIN, TL_NONE, 0, 70);
	check_call(t, 1, F, 0, 20, 70);
	check_call(t, 2, G, 1, 30, 40);
	assert_int_equal(crossing_nr(t), 0);
}

/* Then it was not the one that ran when the collection began, or ended. */
static void test_a_collection_with_operators_outside_of_the_call(void **state)
{
	const struct timeline *t;

	op(*state, 1, IN_F, 0, 0, 10, 0);
	op(*state, 2, IN_F, 2, 30, 35, 0);
	op(*state, 3, IN_MAIN, 1, 40, 45, 0);
	op(*state, 4, IN_F, 1, 130, 140, 0);
	op(*state, 5, IN_F, 2, 160, 170, 0);
	collection(*state, 100, 20, 50);
	collection(*state, 100, 100, 150);
	collection(*state, 100, 120, 200);
	collection(*state, 100, 300, 310);
	t = events__timeline(*state);
	assert_int_equal(t->python_calls.nr, 3);
	check_call(t, 0, MAIN, TL_NONE, 0, 170);
	check_call(t, 1, F, 0, 0, 35);
	check_call(t, 2, F, 0, 100, 170);
	assert_int_equal(t->python_gcs.nr, 3);
	assert_true(t->python_gcs.items[0].crossing);
	assert_int_equal(crossing_nr(t), 1);
	/* One that began while another went on. */
	assert_int_equal(loss_of(t, "time_invalid"), 1);
}

/* The end of an operator that an exception left is a bound. */
static void test_an_operator_that_crosses_a_collection(void **state)
{
	const struct timeline *t;

	op(*state, 1, IN_F, 0, 30, 60, 0);
	collection(*state, 100, 20, 50);
	t = events__timeline(*state);
	check_call(t, 1, F, 0, 30, 60);
	assert_int_equal(crossing_nr(t), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_from_first_to_last, setup, teardown),
		cmocka_unit_test_setup_teardown(test_annotations_make_no_call, setup, teardown),
		cmocka_unit_test_setup_teardown(test_operators_before_an_annotation, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_operators_behind_the_begin_of_an_annotation,
						setup, teardown),
		cmocka_unit_test_setup_teardown(test_an_annotation_ends_in_its_call, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_what_an_annotation_outlives_is_not_shown,
						setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_outlives_an_annotation_is_shown_in_pieces,
						setup, teardown),
		cmocka_unit_test_setup_teardown(test_missing_ops, setup, teardown),
		cmocka_unit_test_setup_teardown(test_modules, setup, teardown),
		cmocka_unit_test_setup_teardown(test_modules_alone, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hostile, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_collection_at_the_end, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_collection_at_the_begin, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_a_collection_with_operators_outside_of_the_call, setup, teardown),
		cmocka_unit_test_setup_teardown(test_an_operator_that_crosses_a_collection, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
