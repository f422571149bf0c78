/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Which records of CUDA events synchronisations wait for, and names of kernels.
 */
#include "unit/events.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void add_record(struct events *e, uint32_t correlation_id, uint32_t event,
		       uint64_t record_id, uint64_t time_ns)
{
	struct gp_ev_cuda_event ev = {
		.head = {.kind = GP_EV_CUDA_EVENT,
			 .flags = time_ns ? GP_CUDA_EVENT_TIMED : 0,
			 .time_ns = time_ns ? time_ns : 99000},
		.record_id = record_id,
		.correlation_id = correlation_id,
		.context = 4,
		.stream = 10 + correlation_id,
		.event = event,
		.device = 3,
	};

	events__raw(e, &ev, sizeof(ev));
}

static void add_wait(struct events *e, uint32_t correlation_id, uint32_t what, uint32_t event,
		     uint64_t record_id)
{
	struct gp_ev_sync_event ev = {
		.sync = {.head = {.kind = GP_EV_SYNC, .time_ns = 1000 * correlation_id + 10},
			 .start_ns = 1000 * correlation_id,
			 .correlation_id = correlation_id,
			 .what = what,
			 .context = 4,
			 .stream = TL_NONE,
			 .event = event},
		.record_id = record_id,
	};

	/* As recordings of before have it. */
	events__raw(e, &ev, record_id ? sizeof(ev) : sizeof(ev.sync));
}

/* By CUPTI's number of the record, else the last one before, whatever order they come in. */
static void test_waits_for_events(void **state)
{
	static const struct {
		uint32_t record, stream;
	} expected[] = {{0, TL_NONE}, {2, 12}, {6, 16}, {2, 12}, {3, 13}, {0, TL_NONE}, {6, 16}};
	struct events *e = *state;
	const struct timeline *t;

	add_wait(e, 1, TL_SYNC_EVENT, 8, 0); /* recorded later only */
	add_wait(e, 4, TL_SYNC_STREAM_WAIT, 8, 0);
	add_wait(e, 7, TL_SYNC_EVENT, 8, 0);
	add_wait(e, 8, TL_SYNC_EVENT, 8, 20);
	add_wait(e, 9, TL_SYNC_EVENT, 9, 0);
	add_wait(e, 10, TL_SYNC_STREAM, 8, 0);
	add_wait(e, 11, TL_SYNC_EVENT, 8, 777); /* a record that was lost */
	add_record(e, 6, 8, 60, 6500);
	add_record(e, 2, 8, 20, 0);
	add_record(e, 3, 9, 30, 0);
	t = events__timeline(e);
	assert_int_equal(t->gpu.work.nr, 7);
	for (size_t i = 0; i < 7; i++) {
		assert_int_equal(t->gpu.work.items[i].sync.record_correlation_id,
				 expected[i].record);
		assert_int_equal(t->gpu.work.items[i].sync.record_stream, expected[i].stream);
	}
	assert_int_equal(t->gpu.events.nr, 1);
	assert_int_equal(t->gpu.events.items[0].time_ns, 6500);
	assert_int_equal(t->gpu.events.items[0].op, TL_NONE);
}

/* Read out as far as Kineto does it: up to 1,024 bytes. */
static void test_names_of_kernels(void **state)
{
	struct events *e = *state;
	const struct timeline *t;
	char names[2][1026] = {"_Z1018", "_Z1019"};

	for (uint32_t i = 0; i < 2; i++) {
		memset(names[i] + 6, 'a', 1018 + i);
		events__gpu(e, (struct event_gpu){.name = names[i],
						  .stream = 7,
						  .start_ns = 2000 + 1000 * i,
						  .end_ns = 2100 + 1000 * i});
	}
	t = events__timeline(e);
	assert_int_equal(t->gpu.work.nr, 2);
	assert_string_equal(t->gpu.work.items[0].name, names[0] + 6);
	assert_string_equal(t->gpu.work.items[1].name, names[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_waits_for_events, events_setup,
						events_teardown),
		cmocka_unit_test_setup_teardown(test_names_of_kernels, events_setup,
						events_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
