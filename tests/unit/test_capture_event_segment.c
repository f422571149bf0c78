/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Which recording an event goes into where one ends and the next begins.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "capture/events/event_writer.h"

#define BORDER_NS 1000

static struct segment before = {.end_ns = BORDER_NS}, after;

static const struct segment *segment_of(const void *event, bool by_steps)
{
	const struct capture_options options = {.schedule.active = by_steps};
	struct recording_set recordings = {.segments = {.current = &after, .draining = &before}};
	const struct event_writer w = {.options = &options, .recordings = &recordings};

	return event_writer__segment(&w, event);
}

/* A call of NCCL whose end is not seen has no time but its start. */
static void test_call_without_end(void **state)
{
	struct gp_ev_collective call = {.head = {.kind = GP_EV_COLLECTIVE}, .start_ns = 500};

	assert_ptr_equal(segment_of(&call, false), &before);
	call.start_ns = 1500;
	assert_ptr_equal(segment_of(&call, false), &after);
}

static void test_across_the_border(void **state)
{
	const struct gp_ev_op op = {.head = {.kind = GP_EV_OP, .time_ns = 1500}, .start_ns = 500};
	const struct gp_ev_module_call call = {.head = {.kind = GP_EV_MODULE_CALL, .time_ns = 1500},
					       .start_ns = 500};
	const struct gp_ev_overhead overhead = {.head = {.kind = GP_EV_OVERHEAD, .time_ns = 1500},
						.start_ns = 500};
	const struct gp_ev_memory memory = {.head = {.kind = GP_EV_MEMORY, .time_ns = 1500}};
	const void *const with_start[] = {&op, &call, &overhead};

	for (size_t i = 0; i < sizeof(with_start) / sizeof(*with_start); i++) {
		assert_ptr_equal(segment_of(with_start[i], false), &after);
		assert_ptr_equal(segment_of(with_start[i], true), &before);
	}
	assert_ptr_equal(segment_of(&memory, true), &after);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_call_without_end),
		cmocka_unit_test(test_across_the_border),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
