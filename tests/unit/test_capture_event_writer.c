/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Events on their way into recordings: in the capture's numbers, each recording whole by itself.
 */
#include "fake_capture.h"

#define TID 77

static int setup(void **state)
{
	struct fake *f = fake_new(GP_FEATURE_OPS);

	fake_start(f);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	fake_free(*state);
	return 0;
}

static struct gp_ev_op an_op(uint32_t name_id)
{
	return (struct gp_ev_op){
		.head = {.kind = GP_EV_OP, .tid = TID, .time_ns = clock_now_ns()},
		.start_ns = clock_now_ns(),
		.instance = 1,
		.name_id = name_id,
	};
}

static void put(struct fake *f, uint32_t source, const void *event, size_t bytes)
{
	struct event_place place;

	assert_int_equal(event_writer__place(&f->writer, f->process, event, &place), 0);
	assert_int_equal(event_writer__put(&f->writer, &place, f->process, source, event, bytes),
			 0);
}

static struct gp_ev_op put_op(struct fake *f, uint32_t source, uint32_t name_id, bool wanted)
{
	struct gp_ev_op op = an_op(name_id), written;
	struct event_place place;

	assert_int_equal(event_writer__place(&f->writer, f->process, &op, &place), 0);
	assert_int_equal(event_writer__put_op(&f->writer, &place, f->process, source, &op,
					      sizeof(op), wanted, &written),
			 0);
	return written;
}

static void put_name(struct fake *f, uint32_t source, uint32_t id, const char *text)
{
	struct {
		struct gp_ev_name ev;
		char text[32];
	} name = {.ev = {.head = {.kind = GP_EV_NAME, .time_ns = 1}, .name_id = id}};

	(void)snprintf(name.text, sizeof(name.text), "%s", text);
	name.ev.text_bytes = (uint32_t)strlen(text);
	put(f, source, &name, sizeof(name));
}

static void next_recording(struct fake *f)
{
	f->recordings.segments.current->end_ns = clock_now_ns();
	assert_int_equal(recording_set__end(&f->recordings, &f->recordings.segments.current), 0);
	assert_int_equal(recording_set__open(&f->recordings, NULL), 0);
	assert_int_equal(recording_set__begin(&f->recordings, clock_now_ns()), 0);
}

/* What one source calls 7 is another thing for another source. */
static void test_numbers_of_sources(void **state)
{
	struct fake *f = *state;
	struct gp_ev_op one, other, probed;
	struct fake_seen seen;

	put_name(f, SOURCE_COLLECTOR(0), 7, "aten::relu");
	put_name(f, SOURCE_COLLECTOR(1), 7, "aten::gelu");
	one = put_op(f, SOURCE_COLLECTOR(0), 7, true);
	other = put_op(f, SOURCE_COLLECTOR(1), 7, true);
	probed = put_op(f, SOURCE_KERNEL, 1, true);
	assert_string_equal(names__text(&f->symbols.names, one.name_id), "aten::relu");
	assert_string_equal(names__text(&f->symbols.names, other.name_id), "aten::gelu");
	assert_string_equal(names__text(&f->symbols.names, probed.name_id), "aten::add");
	fake_stop(f);
	seen = fake_read(0, GP_EV_OP);
	assert_int_equal(seen.nr, 3);
	assert_string_equal(seen.name, "aten::add");
	assert_int_equal(fake_read(0, GP_EV_NAME).nr, 0);
}

static void test_an_unknown_name(void **state)
{
	struct fake *f = *state;

	assert_int_equal(put_op(f, SOURCE_COLLECTOR(0), 9, true).name_id, 0);
	assert_int_equal(f->writer.counts.nameless_nr, 1);
	fake_stop(f);
	assert_int_equal(fake_read(0, GP_EV_OP).nr, 1);
}

/* What is not wanted is translated all the same: controllers look at it. */
static void test_unwanted_ops(void **state)
{
	struct fake *f = *state;
	struct gp_ev_op op;

	put_name(f, SOURCE_COLLECTOR(0), 3, "aten::relu");
	op = put_op(f, SOURCE_COLLECTOR(0), 3, false);
	assert_string_equal(names__text(&f->symbols.names, op.name_id), "aten::relu");
	assert_int_equal(f->writer.counts.unwritten_nr, 0);
	fake_stop(f);
	assert_int_equal(fake_read(0, GP_EV_OP).nr, 0);
}

/* Each recording says once what its events refer to. */
static void test_recordings_are_whole(void **state)
{
	struct fake *f = *state;
	struct gp_ev_device device = {.head = {.kind = GP_EV_DEVICE, .time_ns = 1}, .device = 3};

	put_name(f, SOURCE_COLLECTOR(0), 3, "aten::relu");
	put(f, SOURCE_COLLECTOR(0), &device, sizeof(device));
	for (int i = 0; i < 2; i++) {
		put_op(f, SOURCE_COLLECTOR(0), 3, true);
		put_op(f, SOURCE_COLLECTOR(0), 3, true);
		if (!i)
			next_recording(f);
	}
	fake_stop(f);
	for (unsigned int nr = 0; nr < 2; nr++) {
		assert_int_equal(fake_read(nr, GP_EV_OP).nr, 2);
		assert_string_equal(fake_read(nr, GP_EV_OP).name, "aten::relu");
		assert_int_equal(fake_read(nr, GP_EV_THREAD).nr, 1);
		assert_int_equal(fake_read(nr, GP_EV_DEVICE).nr, 1);
	}
}

/* While one drains, an event is in that in which it ended. */
static void test_the_draining_recording(void **state)
{
	struct fake *f = *state;
	struct segments *s = &f->recordings.segments;
	struct gp_ev_op before, after;

	before = an_op(1);
	s->draining = s->current;
	s->draining->end_ns = clock_now_ns();
	s->current = NULL;
	after = an_op(1);
	after.head.time_ns = s->draining->end_ns;
	before.head.time_ns = s->draining->end_ns - 1;
	assert_ptr_equal(event_writer__segment(&f->writer, &before), s->draining);
	assert_null(event_writer__segment(&f->writer, &after));
	/* Nowhere to go: counted. */
	put_op(f, SOURCE_KERNEL, 1, true);
	assert_int_equal(f->writer.counts.unwritten_nr, 1);
	/* By steps it is in that in which it began. */
	f->options.schedule.active = 1;
	after.start_ns = s->draining->end_ns - 1;
	assert_ptr_equal(event_writer__segment(&f->writer, &after), s->draining);
}

/* The capture's own: in no recording. */
static void test_what_is_not_recorded(void **state)
{
	static const uint8_t kinds[] = {GP_EV_MAPS, GP_EV_UNWIND, GP_EV_CPU_TIME};
	struct fake *f = *state;

	for (size_t i = 0; i < sizeof(kinds); i++) {
		char event[64] = {0};

		((struct gp_ev_head *)event)->kind = kinds[i];
		put(f, SOURCE_KERNEL, event, sizeof(event));
	}
	fake_stop(f);
	for (size_t i = 0; i < sizeof(kinds); i++)
		assert_int_equal(fake_read(0, kinds[i]).nr, 0);
}

/* A text that claims to be longer than its event. */
static void test_a_lie(void **state)
{
	struct fake *f = *state;
	struct gp_ev_name name = {.head = {.kind = GP_EV_NAME}, .name_id = 1, .text_bytes = 9};

	put(f, SOURCE_COLLECTOR(0), &name, sizeof(name));
	assert_int_equal(f->writer.counts.refused_nr, 1);
	assert_int_equal(names__find(&f->symbols.names, SOURCE_COLLECTOR(0), 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_numbers_of_sources, setup, teardown),
		cmocka_unit_test_setup_teardown(test_an_unknown_name, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unwanted_ops, setup, teardown),
		cmocka_unit_test_setup_teardown(test_recordings_are_whole, setup, teardown),
		cmocka_unit_test_setup_teardown(test_the_draining_recording, setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_is_not_recorded, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_lie, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
