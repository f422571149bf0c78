/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The list of controllers, and those without a policy of their own: pauses, rotation and the rate
 * of samples.
 */
#include "fake_capture.h"

#include "capture/control/pause.h"
#include "capture/control/rotation.h"
#include "capture/control/sampling.h"

static int setup(void **state)
{
	*state = fake_new(GP_FEATURE_OPS | GP_FEATURE_CUPTI);
	return 0;
}

static int teardown(void **state)
{
	fake_free(*state);
	return 0;
}

/* ---- the list ---- */

struct part {
	char *said; /* shared */
	char sign;
	int err;
	int at_most_ms;
	int *failed;
};

static int say(void *self)
{
	struct part *p = self;

	p->said[strlen(p->said)] = p->sign;
	return p->err;
}

static void say_in_poll(void *self)
{
	struct part *p = self;

	(void)say(self);
	*p->failed = p->err;
}

static void say_in_free(void *self)
{
	(void)say(self);
}

static int say_in_split(void *self, uint64_t now_ns)
{
	assert_int_equal(now_ns, 5);
	return say(self);
}

static int at_most(const void *self, int timeout_ms)
{
	const struct part *p = self;

	return p->at_most_ms < timeout_ms ? p->at_most_ms : timeout_ms;
}

static bool wants_none(const void *self, const struct gp_ev_op *op)
{
	(void)self, (void)op;
	return false;
}

static const struct controller_ops part_ops = {
	.free = say_in_free,
	.start = say,
	.poll = say_in_poll,
	.timeout_ms = at_most,
	.split = say_in_split,
};

static void test_the_list(void **state)
{
	static const struct controller_ops silent = {0};
	static const struct controller_ops choosy = {.wants_op = wants_none};
	int failed = 0, nothing = 0;
	char said[32] = "";
	struct part a = {said, 'a', 0, 20, &failed}, b = {said, 'b', -EIO, 10, &failed},
		    c = {said, 'c', -EPERM, 30, &failed};
	struct controllers all = {0};

	(void)state;
	assert_int_equal(controllers__add(&all, &part_ops, NULL), -ENOMEM);
	assert_int_equal(all.nr, 0);
	assert_int_equal(controllers__add(&all, &silent, &nothing), 0);
	assert_int_equal(controllers__add(&all, &part_ops, &a), 0);
	assert_int_equal(controllers__add(&all, &part_ops, &b), 0);
	assert_int_equal(controllers__add(&all, &part_ops, &c), 0);
	assert_int_equal(controllers__timeout_ms(&all, 100), 10);
	assert_int_equal(controllers__timeout_ms(&all, 5), 5);
	/* The first error ends a round, but for a split. */
	assert_int_equal(controllers__start(&all), -EIO);
	assert_string_equal(said, "ab");
	assert_int_equal(controllers__split(&all, 5), -EIO);
	assert_string_equal(said, "ababc");
	controllers__poll(&all, &failed);
	assert_string_equal(said, "ababcab");
	controllers__poll(&all, &failed);
	assert_string_equal(said, "ababcab");
	assert_true(controllers__want_op(&all, NULL));
	assert_int_equal(controllers__add(&all, &choosy, &nothing), 0);
	assert_false(controllers__want_op(&all, NULL));
	controllers__done(&all);
	assert_string_equal(said, "ababcabcba");
}

/* ---- pauses ---- */

static struct gp_ev_pause last_pause(unsigned int nr)
{
	struct fake_seen seen = fake_read(nr, GP_EV_PAUSE);
	struct gp_ev_pause ev;

	memcpy(&ev, &seen.last, sizeof(ev));
	return ev;
}

static uint64_t running_ns(struct fake *f, uint64_t now_ns)
{
	struct capture_status s = {.running_ns = now_ns - f->run.start_ns - f->control.paused_ns};

	controllers__status(&f->controllers, now_ns, &s);
	return s.running_ns;
}

/* A pause counts from when all is off. */
static void test_a_pause(void **state)
{
	struct fake *f = *state;
	struct controllers *all = &f->controllers;
	uint64_t asked_ns, off_ns, now_ns;

	assert_int_equal(controllers__add(all, &pause_ops, pause__new(&f->control)), 0);
	fake_start(f);
	assert_int_equal(controllers__switch(all, CAPTURE_CPU, false, NULL), 0);
	assert_true(f->probes->paused);
	assert_int_equal(f->collector->wanted & f->collector->whole, GP_FEATURE_CUPTI);
	asked_ns = clock_now_ns();
	fake_poll(f);
	assert_true(f->control.switching);
	assert_int_equal(running_ns(f, asked_ns), asked_ns - f->run.start_ns);
	fake_collector_obey(f->collector);
	fake_poll(f);
	off_ns = clock_now_ns();
	assert_false(f->control.switching);
	assert_true(running_ns(f, off_ns + SECOND_NS) <= off_ns - f->run.start_ns);
	assert_int_equal(controllers__switch(all, CAPTURE_CPU, true, NULL), 0);
	now_ns = clock_now_ns();
	assert_false(f->probes->paused);
	assert_int_equal(f->collector->wanted & GP_FEATURE_OPS, GP_FEATURE_OPS);
	fake_stop(f);
	assert_int_equal(fake_read(0, GP_EV_PAUSE).nr, 1);
	assert_int_equal(last_pause(0).head.flags, CAPTURE_CPU);
	assert_in_range(last_pause(0).start_ns, asked_ns, off_ns);
	assert_in_range(last_pause(0).head.time_ns, off_ns, now_ns);
	assert_int_equal(f->control.paused_ns, last_pause(0).head.time_ns - last_pause(0).start_ns);
}

/* ---- rotation ---- */

/* A pause that goes on is in both recordings, without a gap. */
static void test_a_pause_over_a_border(void **state)
{
	struct fake *f = *state;
	struct controllers *all = &f->controllers;
	struct rotation *r = rotation__new(&f->control, all);

	assert_int_equal(controllers__add(all, &pause_ops, pause__new(&f->control)), 0);
	assert_int_equal(controllers__add(all, &rotation_ops, r), 0);
	fake_start(f);
	assert_int_equal(controllers__switch(all, CAPTURE_CPU | CAPTURE_GPU, false, NULL), 0);
	fake_collector_obey(f->collector);
	fake_poll(f);
	rotation__request(r);
	fake_poll(f);
	assert_non_null(f->recordings.segments.draining);
	fake_stop(f);
	assert_int_equal(f->recordings.ended_nr, 2);
	assert_int_equal(fake_read(0, GP_EV_PAUSE).nr, 2);
	assert_int_equal(fake_read(1, GP_EV_PAUSE).nr, 2);
	assert_int_equal(last_pause(0).head.time_ns, last_pause(1).start_ns);
	assert_int_equal(last_pause(1).head.time_ns, f->run.end_ns);
}

/* One recording ends once what was on its way has come; asked again meanwhile, it does it once. */
static void test_rotation(void **state)
{
	struct fake *f = *state;
	struct segments *s = &f->recordings.segments;
	struct rotation *r = rotation__new(&f->control, &f->controllers);
	struct segment *first;

	assert_int_equal(controllers__add(&f->controllers, &rotation_ops, r), 0);
	f->collector->whole = f->collector->wanted = f->collector->active = GP_FEATURE_OPS;
	fake_start(f);
	first = s->current;
	fake_poll(f);
	assert_ptr_equal(s->current, first);
	rotation__request(r);
	rotation__request(r);
	fake_poll(f);
	assert_ptr_equal(s->draining, first);
	assert_int_equal(first->end_ns, s->current->start_ns);
	assert_int_equal(f->recordings.ended_nr, 0);
	assert_int_equal(f->probes->renews_nr, 1);
	fake_poll(f);
	assert_null(s->draining);
	assert_int_equal(f->recordings.ended_nr, 1);
	fake_poll(f);
	assert_int_equal(f->recordings.begun_nr, 2);
	fake_stop(f);
	assert_int_equal(f->recordings.ended_nr, 2);
}

/* With CUPTI in a process what GPUs did may come two seconds later. */
static void test_rotation_with_gpus(void **state)
{
	struct fake *f = *state;
	struct rotation *r = rotation__new(&f->control, &f->controllers);
	uint64_t border_ns;

	assert_int_equal(controllers__add(&f->controllers, &rotation_ops, r), 0);
	fake_start(f);
	rotation__request(r);
	fake_poll(f);
	border_ns = f->recordings.segments.current->start_ns;
	fake_poll(f);
	assert_true(f->recordings.segments.draining || clock_now_ns() >= border_ns + 2 * SECOND_NS);
	fake_stop(f);
	assert_int_equal(f->recordings.ended_nr, 2);
}

/* A path where no file can be. */
static char *no_path(void *arg, unsigned int nr)
{
	(void)arg, (void)nr;
	return strdup("/proc/self/nothing/here.gpuprof");
}

/* The next recording cannot be made: the capture fails, or goes on without. */
static void test_no_next_recording(void **state)
{
	struct fake *f = *state;
	struct rotation *r = rotation__new(&f->control, &f->controllers);

	assert_int_equal(controllers__add(&f->controllers, &rotation_ops, r), 0);
	f->options.outlive_disk = true;
	fake_start(f);
	f->collector->active = f->collector->wanted = 0;
	f->options.recording_path = no_path;
	rotation__request(r);
	fake_poll(f);
	assert_int_equal(f->run.failed, 0);
	assert_null(f->recordings.segments.current);
	fake_poll(f);
	assert_int_equal(f->recordings.ended_nr, 1);
	f->options.recording_path = fake_path;
	rotation__request(r);
	fake_poll(f);
	assert_non_null(f->recordings.segments.current);
	f->options.outlive_disk = false;
	f->options.recording_path = no_path;
	rotation__request(r);
	fake_poll(f);
	assert_int_not_equal(f->run.failed, 0);
}

/* ---- sampling ---- */

static void test_the_rate(void **state)
{
	struct fake *f = *state;
	struct rotation *r = rotation__new(&f->control, &f->controllers);
	struct segment *first;
	uint64_t period_ns;

	f->options.mode = CAPTURE_SAMPLE;
	f->options.sample_hz = 100;
	f->options.overhead_pct = 1;
	assert_int_equal(controllers__add(&f->controllers, &rotation_ops, r), 0);
	assert_int_equal(
		controllers__add(&f->controllers, &sampling_ops, sampling__new(&f->control)), 0);
	fake_start(f);
	/* Put in force before the first sample. */
	period_ns = f->probes->period_ns;
	assert_true(period_ns >= SECOND_NS / 100);
	first = f->recordings.segments.current;
	rotation__request(r);
	fake_poll(f);
	assert_ptr_equal(f->recordings.segments.draining, first);
	assert_int_equal(first->rates.time_ns, first->end_ns - first->start_ns);
	assert_int_equal(first->rates.least_ns, period_ns);
	controllers__polled(&f->controllers, 1000);
	fake_stop(f);
	assert_int_equal(f->run.failed, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_list),
		cmocka_unit_test_setup_teardown(test_a_pause, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_pause_over_a_border, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rotation, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rotation_with_gpus, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_next_recording, setup, teardown),
		cmocka_unit_test_setup_teardown(test_the_rate, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
