/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Triggers: what fires them, where that is written and who is told.
 */
#include "fake_capture.h"

#include "capture/control/triggers.h"

#define STEP_NS 1000000ULL

struct example {
	struct fake *f;
	struct triggers *t;
	uint64_t now_ns; /* of the program, in its steps */
};

static int setup(void **state)
{
	struct example *e = calloc(1, sizeof(*e));

	assert_non_null(e);
	e->f = fake_new(GP_FEATURE_OPS);
	e->f->options.triggers = (struct capture_triggers){.on = true, .slow_step = 3, .oom = true};
	e->t = triggers__new(&e->f->control);
	assert_int_equal(controllers__add(&e->f->controllers, &triggers_ops, e->t), 0);
	fake_start(e->f);
	e->now_ns = clock_now_ns();
	*state = e;
	return 0;
}

static int teardown(void **state)
{
	struct example *e = *state;

	fake_free(e->f);
	free(e);
	return 0;
}

static void step(struct example *e, uint64_t took_ns)
{
	struct gp_ev_op op = {.head = {.kind = GP_EV_OP, .tid = 7}, .scope = GP_SCOPE_USER};

	op.start_ns = e->now_ns;
	e->now_ns += took_ns;
	op.head.time_ns = e->now_ns;
	op.instance = e->now_ns;
	assert_int_equal(controllers__on_event(&e->f->controllers, &op), 0);
	assert_int_equal(controllers__on_op(&e->f->controllers, &op, "ProfilerStep#1"), 0);
}

static void assert_nothing(struct example *e)
{
	struct gp_ev_trigger ev;

	assert_false(triggers__take(e->t, &ev));
}

static void test_a_slow_step(void **state)
{
	struct example *e = *state;
	struct gp_ev_trigger ev;

	for (int i = 0; i < 40; i++)
		step(e, STEP_NS);
	step(e, 2 * STEP_NS);
	step(e, STEP_NS);
	assert_nothing(e);
	step(e, 4 * STEP_NS);
	step(e, STEP_NS);
	assert_true(triggers__take(e->t, &ev));
	assert_int_equal(ev.what, GP_TRIGGER_SLOW_STEP);
	assert_int_equal(ev.usual_ns, STEP_NS);
	assert_int_equal(ev.bound_ns, 3 * STEP_NS);
	assert_int_equal(ev.head.time_ns - ev.start_ns, 4 * STEP_NS);
	assert_nothing(e);
	fake_stop(e->f);
	assert_int_equal(fake_read(0, GP_EV_TRIGGER).nr, 1);
}

/* Nothing is slow before there is a median. */
static void test_too_few_steps(void **state)
{
	struct example *e = *state;

	for (int i = 0; i < 5; i++)
		step(e, STEP_NS);
	step(e, 100 * STEP_NS);
	step(e, STEP_NS);
	assert_nothing(e);
}

/* It is told once the thread has left the op in which its request was refused. */
static void test_out_of_memory(void **state)
{
	struct example *e = *state;
	struct gp_ev_memory refused = {
		.head = {.kind = GP_EV_MEMORY, .flags = GP_MEMORY_OOM, .tid = 7},
		.bytes = 4096,
	};
	struct gp_ev_op other = {.head = {.kind = GP_EV_OP, .tid = 8}}, outer = other;
	struct gp_ev_trigger ev;

	refused.head.time_ns = clock_now_ns();
	other.head.time_ns = outer.head.time_ns = refused.head.time_ns + 1;
	outer.head.tid = 7;
	assert_int_equal(controllers__on_event(&e->f->controllers, &refused), 0);
	assert_int_equal(controllers__on_op(&e->f->controllers, &other, "aten::add"), 0);
	assert_nothing(e);
	assert_int_equal(controllers__on_op(&e->f->controllers, &outer, "aten::mm"), 0);
	assert_true(triggers__take(e->t, &ev));
	assert_int_equal(ev.what, GP_TRIGGER_OOM);
	assert_int_equal(ev.bytes, 4096);
	fake_stop(e->f);
	assert_int_equal(fake_read(0, GP_EV_TRIGGER).nr, 1);
}

/* A hang is found once, and again after the program has gone on. */
static void test_a_hang(void **state)
{
	struct example *e = *state;
	struct gp_ev_trigger ev;

	e->f->options.triggers.hang_ns = 1;
	step(e, 0);
	while (clock_now_ns() < e->now_ns + 2)
		;
	fake_poll(e->f);
	assert_true(triggers__take(e->t, &ev));
	assert_int_equal(ev.what, GP_TRIGGER_HANG);
	fake_poll(e->f);
	assert_nothing(e);
	/* What is switched off cannot be seen to go on. */
	e->f->control.off = CAPTURE_CPU;
	e->f->options.triggers.hang_ns = 100 * SECOND_NS;
	fake_poll(e->f);
	assert_nothing(e);
}

/* Whoever waits for one is told of that, whatever comes after. */
static void test_asked_for(void **state)
{
	struct example *e = *state;
	struct gp_ev_trigger ev;

	triggers__fire(e->t, GP_TRIGGER_ASKED);
	for (int i = 0; i < 40; i++)
		step(e, STEP_NS);
	step(e, 9 * STEP_NS);
	step(e, STEP_NS);
	assert_true(triggers__take(e->t, &ev));
	assert_int_equal(ev.what, GP_TRIGGER_ASKED);
	fake_stop(e->f);
	assert_int_equal(fake_read(0, GP_EV_TRIGGER).nr, 2);
	triggers__fire(e->t, GP_TRIGGER_ASKED);
	assert_nothing(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_slow_step, setup, teardown),
		cmocka_unit_test_setup_teardown(test_too_few_steps, setup, teardown),
		cmocka_unit_test_setup_teardown(test_out_of_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_hang, setup, teardown),
		cmocka_unit_test_setup_teardown(test_asked_for, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
