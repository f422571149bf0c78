/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A schedule over steps that annotations mark: which steps are recorded, and what is collected in
 * between.
 */
#include "fake_capture.h"

#include "capture/control/schedule_runner.h"

struct example {
	struct fake *f;
	struct gp_ev_op op;
};

static void setup_schedule(struct example *e, struct schedule schedule)
{
	struct fake *f = fake_new(GP_FEATURE_OPS);

	f->options.schedule = schedule;
	assert_int_equal(controllers__add(&f->controllers, &schedule_runner_ops,
					  schedule_runner__new(&f->control)),
			 0);
	fake_start(f);
	e->f = f;
	e->op = (struct gp_ev_op){.head = {.kind = GP_EV_OP, .tid = 7}, .scope = GP_SCOPE_USER};
}

/* The end of the annotation of a step. */
static void annotate(struct example *e)
{
	e->op.start_ns = e->op.head.time_ns;
	e->op.head.time_ns = clock_now_ns();
	e->op.instance++;
	assert_int_equal(controllers__on_op(&e->f->controllers, &e->op, "ProfilerStep#1"), 0);
}

/* Collectors do what they were asked to, and polls see that. */
static void catch_up(struct example *e)
{
	fake_collector_obey(e->f->collector);
	for (int i = 0; i < 3; i++)
		fake_poll(e->f);
	assert_int_equal(e->f->run.failed, 0);
}

static void step(struct example *e)
{
	annotate(e);
	catch_up(e);
}

static struct capture_status status_of(struct example *e)
{
	struct capture_status s = {0};

	controllers__status(&e->f->controllers, clock_now_ns(), &s);
	return s;
}

static void test_cycles(void **state)
{
	struct example e;

	(void)state;
	setup_schedule(&e, (struct schedule){.wait = 3, .warmup = 1, .active = 2, .repeat = 2});
	/* The first step is known at the third annotation. */
	for (int i = 0; i < 20 && !status_of(&e).over; i++)
		step(&e);
	assert_true(status_of(&e).over);
	assert_string_equal(status_of(&e).steps_by, "ProfilerStep#1");
	assert_int_equal(status_of(&e).late_steps_nr, 0);
	assert_int_equal(e.f->recordings.ended_nr, 2);
	fake_stop(e.f);
	for (unsigned int nr = 0; nr < 2; nr++) {
		char *path = fake_path(NULL, nr);
		struct recording *r;

		assert_int_equal(recording__open(path, NULL, &r), 0);
		assert_string_equal(recording__meta(r, "steps_nr"), "2");
		assert_string_equal(recording__meta(r, "steps"), nr ? "10" : "4");
		recording__free(r);
		free(path);
	}
	fake_free(e.f);
}

/* Between cycles the ends of annotations alone are collected. */
static void test_what_is_collected(void **state)
{
	struct example e;

	(void)state;
	setup_schedule(&e, (struct schedule){.wait = 5, .active = 1});
	assert_int_equal(e.f->collector->wanted, GP_FEATURE_OPS);
	for (int i = 0; i < 3; i++)
		step(&e);
	assert_int_equal(e.f->collector->wanted, GP_FEATURE_STEPS);
	assert_true(e.f->probes->paused);
	assert_null(e.f->recordings.segments.current);
	/* One step ahead of what is recorded. */
	for (int i = 0; i < 4; i++)
		step(&e);
	assert_int_equal(e.f->collector->wanted & GP_FEATURE_OPS, GP_FEATURE_OPS);
	assert_false(e.f->probes->paused);
	assert_non_null(e.f->recordings.segments.current);
	fake_free(e.f);
}

static uint64_t loss_in(unsigned int nr, const char *name)
{
	char *path = fake_path(NULL, nr);
	uint64_t count = 0, found = UINT64_MAX;
	struct recording *r;

	assert_int_equal(recording__open(path, NULL, &r), 0);
	for (size_t i = 0; i < recording__losses(r); i++)
		if (!strcmp(recording__loss_at(r, i, &count), name))
			found = count;
	recording__free(r);
	free(path);
	return found;
}

/* A step for which the collectors were not ready is passed over, and counted. */
static void test_a_late_step(void **state)
{
	struct example e;

	(void)state;
	setup_schedule(&e, (struct schedule){.wait = 5, .active = 1, .repeat = 1});
	for (int i = 0; i < 6; i++)
		step(&e);
	/* The one before it, and it itself, without a poll in between. */
	annotate(&e);
	annotate(&e);
	assert_int_equal(status_of(&e).late_steps_nr, 1);
	assert_int_equal(e.f->recordings.ended_nr, 0);
	catch_up(&e);
	for (int i = 0; i < 3; i++)
		step(&e);
	assert_true(status_of(&e).over);
	assert_int_equal(e.f->recordings.ended_nr, 1);
	assert_int_equal(status_of(&e).late_steps_nr, 1);
	assert_int_equal(loss_in(0, "late_steps"), 1);
	fake_free(e.f);
}

/* It goes by its schedule, whatever the user asks for. */
static void test_refusals(void **state)
{
	struct reason why = {0};
	struct example e;

	(void)state;
	setup_schedule(&e, (struct schedule){.active = 1});
	assert_int_equal(controllers__switch(&e.f->controllers, CAPTURE_CPU, false, &why), -EBUSY);
	assert_non_null(strstr(why.text, "by steps"));
	assert_int_equal(controllers__may_flush(&e.f->controllers, &why), -EBUSY);
	fake_free(e.f);
}

/* Another process's steps are not looked at; what has not begun when it stops is no recording. */
static void test_no_steps(void **state)
{
	struct example e;

	(void)state;
	setup_schedule(&e, (struct schedule){.active = 1});
	e.op.head.process = 1;
	for (int i = 0; i < 6; i++)
		step(&e);
	assert_null(status_of(&e).steps_by);
	assert_non_null(e.f->recordings.segments.current);
	fake_stop(e.f);
	assert_int_equal(e.f->recordings.ended_nr, 0);
	fake_free(e.f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cycles),	    cmocka_unit_test(test_what_is_collected),
		cmocka_unit_test(test_a_late_step), cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_no_steps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
