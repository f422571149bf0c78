/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Windows that a budget pays for: of everything, and of GPU records. When they open is the
 * policies' matter, which have tests of their own; here it is what is asked of collectors and
 * probes, and what recordings say.
 */
#include "fake_capture.h"

#include "capture/control/budget_windows.h"
#include "capture/control/gpu_windows.h"
#include "capture/control/rotation.h"

#define ALL (uint32_t)(GP_FEATURE_OPS | GP_FEATURE_CUPTI)

static struct fake *begin(const struct controller_ops *ops, uint32_t features, bool samples)
{
	struct fake *f = fake_new(features);
	void *self;

	f->options.overhead_pct = 1;
	if (samples) {
		f->options.mode = CAPTURE_SAMPLE;
		f->options.gpu = f->options.inject = true;
		self = gpu_windows__new(&f->control);
	} else {
		self = budget_windows__new(&f->control);
	}
	assert_int_equal(controllers__add(&f->controllers, ops, self), 0);
	return f;
}

static struct gp_ev_op an_op(uint64_t start_ns, uint64_t end_ns)
{
	return (struct gp_ev_op){
		.head = {.kind = GP_EV_OP, .tid = 7, .time_ns = end_ns},
		.start_ns = start_ns,
	};
}

static struct capture_status status_of(struct fake *f)
{
	struct capture_status s = {0};

	controllers__status(&f->controllers, clock_now_ns(), &s);
	return s;
}

static struct gp_ev_pause last_pause(unsigned int nr)
{
	struct fake_seen seen = fake_read(nr, GP_EV_PAUSE);
	struct gp_ev_pause ev;

	assert_true(seen.nr > 0);
	memcpy(&ev, &seen.last, sizeof(ev));
	return ev;
}

/* ---- within a budget ---- */

/* Collection is off from the start on: collectors report the ends of annotations, no probe is
 * placed, and no op is recorded. */
static void test_muted(void **state)
{
	struct fake *f = begin(&budget_windows_ops, ALL, false);
	struct gp_ev_op op;

	(void)state;
	fake_start(f);
	assert_int_equal(f->collector->wanted,
			 GP_FEATURE_STEPS | GP_FEATURE_CPU_TIME | GP_FEATURE_CUPTI_HELD);
	assert_true(f->probes->paused);
	assert_int_equal(f->probes->lifts_nr, 1);
	assert_int_equal(f->probes->places_nr, 0);
	op = an_op(clock_now_ns(), clock_now_ns());
	assert_false(controllers__want_op(&f->controllers, &op));
	assert_true(status_of(f).budgeted);
	/* Looked at more often until all is off. */
	assert_true(controllers__timeout_ms(&f->controllers, 1000) < 1000);
	fake_collector_obey(f->collector);
	fake_poll(f);
	fake_poll(f);
	assert_int_equal(controllers__timeout_ms(&f->controllers, 1000), 1000);
	fake_stop(f);
	assert_int_equal(f->run.failed, 0);
	/* The time at its borders, and that nothing was collected until the end. */
	assert_int_equal(fake_read(0, GP_EV_WINDOW).nr, 2);
	assert_int_equal(last_pause(0).head.time_ns, f->run.end_ns);
	assert_int_equal(last_pause(0).head.flags, CAPTURE_CPU | CAPTURE_GPU);
	fake_free(f);
}

/* The user switches all of it off and on: that is a pause of another kind. */
static void test_asleep(void **state)
{
	struct fake *f = begin(&budget_windows_ops, ALL, false);
	struct controllers *all = &f->controllers;
	struct reason why = {0};

	(void)state;
	fake_start(f);
	fake_collector_obey(f->collector);
	fake_poll(f);
	fake_poll(f);
	assert_int_equal(controllers__switch(all, CAPTURE_CPU, false, &why), -EBUSY);
	assert_int_equal(controllers__switch(all, CAPTURE_CPU | CAPTURE_GPU, false, &why), 0);
	assert_int_equal(f->collector->wanted, 0);
	assert_true(f->control.switching);
	fake_poll(f);
	assert_true(f->control.switching);
	fake_collector_obey(f->collector);
	fake_poll(f);
	assert_false(f->control.switching);
	assert_int_equal(f->control.paused_ns, 0);
	assert_int_equal(controllers__switch(all, CAPTURE_CPU | CAPTURE_GPU, true, &why), 0);
	assert_int_not_equal(f->collector->wanted, 0);
	assert_true(f->control.paused_ns > 0);
	fake_stop(f);
	assert_int_equal(f->run.failed, 0);
	fake_free(f);
}

/* Each recording says how the time was until its end. */
static void test_budget_over_a_border(void **state)
{
	struct fake *f = begin(&budget_windows_ops, ALL, false);
	struct rotation *r = rotation__new(&f->control, &f->controllers);
	uint64_t border_ns;

	(void)state;
	assert_int_equal(controllers__add(&f->controllers, &rotation_ops, r), 0);
	fake_start(f);
	fake_collector_obey(f->collector);
	fake_poll(f);
	fake_poll(f);
	rotation__request(r);
	fake_poll(f);
	border_ns = f->recordings.segments.current->start_ns;
	fake_poll(f);
	fake_stop(f);
	assert_int_equal(last_pause(0).head.time_ns, border_ns);
	assert_int_equal(last_pause(1).start_ns, border_ns);
	assert_int_equal(last_pause(1).head.time_ns, f->run.end_ns);
	/* At its begin and at its end. */
	assert_int_equal(fake_read(1, GP_EV_WINDOW).nr, 2);
	fake_free(f);
}

/* ---- GPU records beside samples ---- */

/* Without CUPTI in any process there is nothing to be seen, and nothing to be said. */
static void test_no_gpu(void **state)
{
	struct fake *f = begin(&gpu_windows_ops, 0, true);

	(void)state;
	fake_start(f);
	fake_poll(f);
	assert_int_equal(controllers__timeout_ms(&f->controllers, 1000), 1000);
	fake_stop(f);
	assert_int_equal(fake_read(0, GP_EV_WINDOW).nr, 0);
	assert_int_equal(fake_read(0, GP_EV_PAUSE).nr, 0);
	fake_free(f);
}

/* The first process with CUPTI begins a window; what was before is time that windows do not stand
 * for. */
static void test_gpu_records(void **state)
{
	struct fake *f = begin(&gpu_windows_ops, 0, true);

	(void)state;
	fake_start(f);
	fake_poll(f);
	f->collector->whole = f->collector->wanted = f->collector->active = GP_FEATURE_CUPTI;
	fake_poll(f);
	assert_true(controllers__timeout_ms(&f->controllers, 100000) < 100000);
	fake_poll(f);
	fake_stop(f);
	assert_int_equal(f->run.failed, 0);
	assert_int_equal(last_pause(0).head.flags, CAPTURE_GPU);
	assert_int_equal(last_pause(0).start_ns, f->run.start_ns);
	/* The mark that GPUs are looked at, and the window. */
	assert_int_equal(fake_read(0, GP_EV_WINDOW).nr, 2);
	assert_int_equal(fake_read(0, GP_EV_WINDOW).last.head.time_ns, f->run.end_ns);
	fake_free(f);
}

/* The user has GPUs off: the window is over, and records stay off until they are wanted again. */
static void test_gpu_off(void **state)
{
	struct fake *f = begin(&gpu_windows_ops, GP_FEATURE_CUPTI, true);

	(void)state;
	fake_start(f);
	f->control.off = CAPTURE_GPU;
	f->collector->wanted = GP_FEATURE_CUPTI_HELD;
	fake_collector_obey(f->collector);
	for (int i = 0; i < 4; i++)
		fake_poll(f);
	assert_int_equal(f->collector->wanted, GP_FEATURE_CUPTI_HELD);
	assert_int_equal(f->run.failed, 0);
	fake_stop(f);
	/* It had a window from the start to the switch. */
	assert_true(fake_read(0, GP_EV_WINDOW).nr <= 2);
	assert_true(fake_read(0, GP_EV_WINDOW).last.head.time_ns < f->run.end_ns);
	fake_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_muted),
		cmocka_unit_test(test_asleep),
		cmocka_unit_test(test_budget_over_a_border),
		cmocka_unit_test(test_no_gpu),
		cmocka_unit_test(test_gpu_records),
		cmocka_unit_test(test_gpu_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
