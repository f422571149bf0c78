/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Events from the rings to the writer, to controllers and to their process.
 */
#include "fake_capture.h"

#include "capture/dispatch.h"

struct heard {
	char text[256]; /* what was called, in order */
	bool wants;
	int on_event_err;
};

struct example {
	struct fake *f;
	struct dispatch d;
	struct heard heard;
};

static void note(struct heard *h, const char *what)
{
	size_t at = strlen(h->text);

	(void)snprintf(h->text + at, sizeof(h->text) - at, "%s ", what);
}

static int hear_event(void *self, const void *event)
{
	struct heard *h = self;
	char text[16];

	(void)snprintf(text, sizeof(text), "event%d", ((const struct gp_ev_head *)event)->kind);
	note(h, text);
	return h->on_event_err;
}

static bool want(const void *self, const struct gp_ev_op *op)
{
	(void)op;
	return ((const struct heard *)self)->wants;
}

static int hear_op(void *self, const struct gp_ev_op *op, const char *name)
{
	(void)op;
	note(self, name);
	return 0;
}

static const struct controller_ops heard_ops = {
	.on_event = hear_event,
	.wants_op = want,
	.on_op = hear_op,
};

static int setup(void **state)
{
	struct example *e = calloc(1, sizeof(*e));

	assert_non_null(e);
	e->heard.wants = true;
	e->f = fake_new(GP_FEATURE_OPS);
	e->d = (struct dispatch){.run = &e->f->run,
				 .processes = &e->f->processes,
				 .writer = &e->f->writer,
				 .controllers = &e->f->controllers};
	assert_int_equal(controllers__add(&e->f->controllers, &heard_ops, &e->heard), 0);
	*state = e;
	return 0;
}

static int teardown(void **state)
{
	struct example *e = *state;

	dispatch__done(&e->d);
	fake_free(e->f);
	free(e);
	return 0;
}

static struct gp_ev_op an_op(uint32_t name_id)
{
	uint64_t now = clock_now_ns();

	return (struct gp_ev_op){
		.head = {.kind = GP_EV_OP, .tid = 7, .time_ns = now},
		.start_ns = now,
		.instance = 1,
		.name_id = name_id,
	};
}

static void give(struct example *e, struct gp_ev_op op)
{
	fake_ring_add(e->f->probes, &op, sizeof(op));
}

static void give_collected(struct example *e, const void *event, size_t bytes)
{
	uint64_t nr = bytes;

	buf__add(&e->f->collector->ring, &nr, sizeof(nr));
	buf__add(&e->f->collector->ring, event, bytes);
	buf__add(&e->f->collector->ring, (const char[8]){0}, -bytes & 7);
}

static void name(struct example *e, uint32_t id, const char *text)
{
	struct {
		struct gp_ev_name ev;
		char text[16];
	} n = {.ev = {.head = {.kind = GP_EV_NAME, .time_ns = 1}, .name_id = id}};

	(void)snprintf(n.text, sizeof(n.text), "%s", text);
	n.ev.text_bytes = (uint32_t)strlen(text);
	give_collected(e, &n, sizeof(n));
}

/* Controllers hear of an event before it is written, of an op again when it has its name. */
static void test_order(void **state)
{
	struct example *e = *state;

	fake_start(e->f);
	give(e, an_op(1));
	dispatch__drain(&e->d);
	assert_string_equal(e->heard.text, "event1 aten::add ");
	e->heard.wants = false;
	give(e, an_op(2));
	dispatch__drain(&e->d);
	assert_string_equal(e->heard.text, "event1 aten::add event1 aten::mm ");
	fake_stop(e->f);
	assert_int_equal(fake_read(0, GP_EV_OP).nr, 1);
	assert_int_equal(e->f->writer.counts.events_nr, 2);
}

/* Events that cannot be looked at. */
static void test_refused(void **state)
{
	struct example *e = *state;
	struct gp_ev_op unknown = an_op(1), nobody = an_op(1);
	struct gp_ev_head cut = unknown.head;

	fake_start(e->f);
	unknown.head.kind = 250;
	nobody.head.process = 9;
	give(e, unknown);
	give(e, nobody);
	fake_ring_add(e->f->probes, &cut, sizeof(cut));
	fake_ring_add(e->f->probes, &cut, 4);
	give_collected(e, &nobody, sizeof(nobody));
	dispatch__drain(&e->d);
	assert_int_equal(e->f->writer.counts.refused_nr, 5);
	assert_int_equal(e->f->writer.counts.events_nr, 0);
	assert_string_equal(e->heard.text, "");
}

/* A controller's error: the event is not written, and the capture fails. */
static void test_an_error(void **state)
{
	struct example *e = *state;

	fake_start(e->f);
	e->heard.on_event_err = -EIO;
	give(e, an_op(1));
	give(e, an_op(1));
	dispatch__drain(&e->d);
	assert_int_equal(e->f->run.failed, -EIO);
	assert_string_equal(e->heard.text, "event1 ");
}

/* What a collector reports of the time before the start: names are kept, ops are not. */
static void test_before_the_start(void **state)
{
	struct example *e = *state;
	struct gp_ev_op early = an_op(5), open = an_op(5), late;

	name(e, 5, "aten::relu");
	give_collected(e, &early, sizeof(early));
	dispatch__drain(&e->d);
	fake_start(e->f);
	open.start_ns = e->f->run.start_ns - 1;
	open.head.time_ns = clock_now_ns();
	late = an_op(5);
	give_collected(e, &early, sizeof(early));
	give_collected(e, &open, sizeof(open));
	give_collected(e, &late, sizeof(late));
	dispatch__drain(&e->d);
	assert_string_equal(e->heard.text, "event6 event1 aten::relu ");
	assert_int_equal(e->f->writer.counts.open_at_start_nr, 1);
	assert_int_equal(e->f->writer.counts.collector_ops_nr, 1);
	fake_stop(e->f);
	assert_int_equal(fake_read(0, GP_EV_OP).nr, 1);
}

/* By steps the kernel's events come after those of the collectors. */
static void test_by_steps(void **state)
{
	struct example *e = *state;
	struct gp_ev_op op;

	e->f->options.schedule.active = 1;
	fake_start(e->f);
	op = an_op(5);
	give(e, an_op(1));
	name(e, 5, "aten::relu");
	give_collected(e, &op, sizeof(op));
	dispatch__drain(&e->d);
	assert_string_equal(e->heard.text, "event6 event1 aten::relu event1 aten::add ");
	assert_int_equal(e->d.held.nr, 0);
}

/* After the stop CUPTI's records wait for what they were launched by. */
static void test_late_records(void **state)
{
	struct example *e = *state;
	struct gp_ev_kernel kernel = {.head = {.kind = GP_EV_KERNEL}, .correlation_id = 4};

	fake_start(e->f);
	kernel.start_ns = kernel.head.time_ns = clock_now_ns();
	e->f->run.end_ns = clock_now_ns();
	e->f->run.stopped = true;
	give_collected(e, &kernel, sizeof(kernel));
	dispatch__drain(&e->d);
	assert_string_equal(e->heard.text, "");
	assert_int_equal(dispatch__put_late_records(&e->d), 0);
	assert_string_equal(e->heard.text, "event8 ");
	assert_int_equal(e->f->writer.counts.collector_gpu_nr, 1);
}

/* What the process set is to know. */
static void test_processes_are_notified(void **state)
{
	struct example *e = *state;
	struct gp_ev_process exec = {.head = {.kind = GP_EV_PROCESS, .time_ns = 1},
				     .what = GP_PROCESS_EXIT,
				     .value = 256};
	struct gp_ev_head maps = {.kind = GP_EV_MAPS, .time_ns = 1};
	struct gp_ev_unwind unwind = {.head = {.kind = GP_EV_UNWIND, .time_ns = 1}};

	fake_start(e->f);
	fake_ring_add(e->f->probes, &exec, sizeof(exec));
	fake_ring_add(e->f->probes, &maps, sizeof(maps));
	fake_ring_add(e->f->probes, &unwind, sizeof(unwind));
	dispatch__drain(&e->d);
	assert_int_equal(e->f->process->exit_status, 256);
	assert_true(e->f->process->maps.changed);
	assert_int_equal(e->f->probes->unwinds_nr, 1);
	e->f->process->maps.changed = false;
	exec.what = GP_PROCESS_EXEC;
	fake_ring_add(e->f->probes, &exec, sizeof(exec));
	dispatch__drain(&e->d);
	assert_int_equal(e->f->process->end, PROCESS_EXECED);
	fake_stop(e->f);
	assert_int_equal(fake_read(0, GP_EV_PROCESS).nr, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_order, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_an_error, setup, teardown),
		cmocka_unit_test_setup_teardown(test_before_the_start, setup, teardown),
		cmocka_unit_test_setup_teardown(test_by_steps, setup, teardown),
		cmocka_unit_test_setup_teardown(test_late_records, setup, teardown),
		cmocka_unit_test_setup_teardown(test_processes_are_notified, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
