/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Stacks in the collector's ring: invalid ones are refused and counted, and an operator keeps the
 * id of a stack only if that stack was announced before.
 */
#include "unit/ring_ends.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

struct reported {
	struct gp_ev_stack stack;
	struct gp_stack_frame frames[GP_STACK_FRAMES + 1];
};

static struct ring_writer w;
static struct ring_reader *r;
static union {
	struct gp_ev_op op;
	struct reported reported;
} seen;
static size_t seen_bytes;

static int begin(void **state)
{
	return ring_ends_open(&w, &r, 1 << 16);
}

static int end(void **state)
{
	ring_ends_close(&w, r);
	return 0;
}

static int take(const void *event, size_t bytes, void *arg)
{
	assert_true(bytes <= sizeof(seen));
	memcpy(&seen, event, bytes);
	seen_bytes = bytes;
	return 0;
}

/* The number of frames in the ring, and the number that the event claims. */
static int emit(uint32_t id, uint32_t said_nr, size_t nr)
{
	struct reported ev;

	/* Every field that the process must not decide is garbage. */
	memset(&ev, 0xee, sizeof(ev));
	ev.stack.head.kind = GP_EV_STACK;
	ev.stack.stack_id = id;
	ev.stack.frames_nr = said_nr;
	assert_true(ring_writer__write(&w, &ev, sizeof(ev.stack) + nr * sizeof(ev.frames[0])));
	return ring_reader__drain(r, take, NULL);
}

static void test_stacks(void **state)
{
	static const struct {
		uint32_t id, said_nr;
		size_t nr;
		bool good;
	} cases[] = {
		{1, 1, 1, true},
		{GP_RING_STACKS - 1, 1, 1, true},
		{1, GP_STACK_FRAMES, GP_STACK_FRAMES, true},
		{0, 1, 1, false},
		{GP_RING_STACKS, 1, 1, false},
		{UINT32_MAX, 1, 1, false},
		{1, 0, 0, false},
		{1, 1, 0, false},
		{1, 1, 2, false},
		{1, 2, 1, false},
		{1, GP_STACK_FRAMES + 1, GP_STACK_FRAMES + 1, false},
		{1, UINT32_MAX, 1, false},
		{1, 1U << 28 | 1, 1, false},
	};
	uint64_t refused_nr = 0;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(emit(cases[i].id, cases[i].said_nr, cases[i].nr), cases[i].good);
		refused_nr += !cases[i].good;
		assert_int_equal(help_loss(r, GP_LOSS_RECORD), refused_nr);
	}
}

static void test_what_is_taken(void **state)
{
	assert_int_equal(emit(9, 3, 3), 1);
	assert_int_equal(seen_bytes,
			 sizeof(seen.reported.stack) + 3 * sizeof(seen.reported.frames[0]));
	assert_int_equal(seen.reported.stack.head.process, HELP_PROCESS);
	assert_int_equal(seen.reported.stack.head.tid, 0);
	assert_int_equal(seen.reported.stack.head.flags,
			 0xee & (GP_STACK_TRUNCATED | GP_STACK_INCOMPLETE));
	assert_int_equal(seen.reported.stack.stack_id, 9);
	assert_int_equal(seen.reported.frames[2].check, 0xeeeeeeee);
}

static uint32_t id_of_op(uint32_t nr, uint32_t id)
{
	struct gp_ev_op op = help_op(nr);

	op.stack_id = id;
	assert_true(ring_writer__write(&w, &op, sizeof(op)));
	assert_int_equal(ring_reader__drain(r, take, NULL), 1);
	return seen.op.stack_id;
}

static void test_ids_of_ops(void **state)
{
	static const uint32_t unknown[] = {1, 3, GP_RING_STACKS - 1, GP_RING_STACKS, UINT32_MAX};
	uint32_t nr = 3;

	assert_int_equal(emit(2, 1, 1), 1);
	assert_int_equal(id_of_op(1, 0), 0);
	assert_int_equal(id_of_op(2, 2), 2);
	assert_int_equal(help_loss(r, GP_LOSS_STACK_ROOM), 0);
	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
		assert_int_equal(id_of_op(nr++, unknown[i]), 0);
		assert_int_equal(help_loss(r, GP_LOSS_STACK_ROOM), i + 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_stacks, begin, end),
		cmocka_unit_test_setup_teardown(test_what_is_taken, begin, end),
		cmocka_unit_test_setup_teardown(test_ids_of_ops, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
