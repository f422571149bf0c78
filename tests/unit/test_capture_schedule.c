/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The schedule as torch.profiler.schedule defines it, and steps found in a stream of ops.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "capture/policy/schedule.h"
#include "capture/policy/step_finder.h"

/* N: nothing, W: warm up, R: record, S: record and save. As torch.profiler.schedule() of PyTorch
 * 2.14 answers for steps 0, 1, ... */
static void expect(const char *text, const char *actions)
{
	struct schedule s;

	assert_int_equal(schedule_parse(text, NULL, &s), 0);
	for (size_t i = 0; actions[i]; i++)
		assert_int_equal("NWRS"[schedule_action(&s, i)], actions[i]);
}

static void test_actions(void **state)
{
	expect("wait=1,warmup=1,active=3,repeat=2", "NWRRSNWRRSNNN");
	expect("active=1", "SSSS");
	expect("active=2,wait=1", "NRSNRSNRS");
	expect("wait=1,warmup=1,active=1,repeat=1,skip_first=2", "NNNWSNNN");
	expect("wait=2,warmup=1,active=1,repeat=2,skip_first=1,skip_first_wait=1", "NWSNNWSNNNN");
	expect("warmup=2,active=1,repeat=1", "WWSNN");
}

static void test_over(void **state)
{
	struct schedule s;

	assert_int_equal(schedule_parse("wait=1,active=2,repeat=2,skip_first=3", NULL, &s), 0);
	assert_false(schedule_is_over(&s, 0));
	assert_false(schedule_is_over(&s, 8));
	assert_true(schedule_is_over(&s, 9));
	assert_int_equal(schedule_parse("active=2", NULL, &s), 0);
	assert_false(schedule_is_over(&s, UINT64_MAX));
}

static void test_refused(void **state)
{
	static const char *const bad[] = {
		"",	      "wait=1",	   "active=0",	   "active",
		"active=",    "active=x",  "active=-1",	   "active=1,",
		"active=1,,", "active=1 ", "active=1,x=2", "active=9999999999",
		"activex=1",  ",active=1", NULL,
	};
	struct schedule s = {.active = 7};

	for (size_t i = 0; bad[i]; i++)
		assert_int_equal(schedule_parse(bad[i], NULL, &s), -EINVAL);
	assert_int_equal(s.active, 7);
}

struct feed {
	struct step_finder *f;
	uint64_t now_ns;
	unsigned int steps;
	uint64_t last_ns;
};

static void op_on(struct feed *d, const char *name, uint32_t tid)
{
	struct gp_ev_op op = {.head = {.tid = tid, .time_ns = d->now_ns + 10},
			      .start_ns = d->now_ns,
			      .scope = strchr(name, '#') ? GP_SCOPE_USER : GP_SCOPE_FUNCTION};

	d->now_ns += 20;
	d->steps += step_finder__op(d->f, &op, name, &d->last_ns);
}

static void op(struct feed *d, const char *name)
{
	op_on(d, name, 1);
}

static int setup(void **state)
{
	struct feed *d = calloc(1, sizeof(*d));

	assert_non_null(d);
	d->f = step_finder__new();
	assert_non_null(d->f);
	d->now_ns = 1000;
	*state = d;
	return 0;
}

static int teardown(void **state)
{
	struct feed *d = *state;

	step_finder__free(d->f);
	free(d);
	return 0;
}

/* The optimizer's steps are known at the third one; the DataLoader's are not steps. */
static void test_optimizer(void **state)
{
	struct feed *d = *state;

	for (int i = 0; i < 5; i++) {
		op(d, "enumerate(DataLoader)#x.__next__");
		op(d, "aten::mm");
		op(d, "Optimizer.step#SGD.step");
		assert_int_equal(d->steps, i < 2 ? 0 : i - 1);
	}
	assert_int_equal(d->last_ns, d->now_ns - 10);
	assert_string_equal(step_finder__marker(d->f), "Optimizer.step#SGD.step");
	assert_true(step_finder__by_annotations(d->f));
}

static void test_dataloader(void **state)
{
	struct feed *d = *state;

	for (int i = 0; i < 4; i++) {
		op(d, "enumerate(DataLoader)#x.__next__");
		op(d, "aten::mm");
	}
	assert_int_equal(d->steps, 2);
	assert_int_equal(d->last_ns, d->now_ns - 40);
}

/* Also when another thread is as busy. */
static void test_cycle(void **state)
{
	struct feed *d = *state;
	unsigned int before;

	for (int i = 0; i < 60; i++) {
		op(d, "aten::conv2d");
		op(d, "aten::relu");
		op_on(d, "aten::add", 2);
		d->now_ns += 100;
	}
	before = d->steps;
	assert_true(before > 0);
	assert_int_equal(step_finder__cycle(d->f), 2);
	assert_string_equal(step_finder__marker(d->f), "");
	/* A step that is another: the next one counts again. */
	op(d, "aten::conv2d");
	op(d, "aten::gelu");
	op(d, "aten::conv2d");
	op(d, "aten::relu");
	op(d, "aten::conv2d");
	assert_int_equal(d->steps, before + 3);
}

/* Layers of a network that is being trained are no steps. */
static void test_training_has_no_cycle(void **state)
{
	struct feed *d = *state;

	for (int i = 0; i < 200; i++) {
		op(d, "autograd::engine::evaluate_function: MmBackward0");
		op(d, "autograd::engine::evaluate_function: ReluBackward0");
	}
	assert_int_equal(d->steps, 0);
	assert_null(step_finder__marker(d->f));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_actions),
		cmocka_unit_test(test_over),
		cmocka_unit_test(test_refused),
		cmocka_unit_test_setup_teardown(test_optimizer, setup, teardown),
		cmocka_unit_test_setup_teardown(test_dataloader, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cycle, setup, teardown),
		cmocka_unit_test_setup_teardown(test_training_has_no_cycle, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
