/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Inputs of operators in the collector's ring: invalid lists are refused and counted, and an
 * operator keeps the id of a list only if that list was announced before.
 */
#include "unit/ring_ends.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define LIST_BYTES 1024

static const uint8_t plain[] = {GP_INPUT_TENSOR, 6, 2, 2, 3, GP_INPUT_INT, 1};

struct list {
	struct gp_ev_inputs inputs;
	uint8_t data[LIST_BYTES];
};

static struct ring_writer w;
static struct ring_reader *r;
static union {
	struct gp_ev_head head;
	struct gp_ev_op_inputs op;
	struct list list;
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
	memset(&seen, 0xee, sizeof(seen));
	memcpy(&seen, event, bytes);
	seen_bytes = bytes;
	return 0;
}

/* The caller decides how many bytes behind the event's head are in the ring. */
static int emit_list(uint32_t id, uint32_t said_bytes, const uint8_t *data, size_t bytes)
{
	struct list ev;

	/* Every field that the process must not decide, and the list's padding, is garbage. */
	memset(&ev, 0xee, sizeof(ev));
	ev.inputs.head.kind = GP_EV_INPUTS;
	ev.inputs.inputs_id = id;
	ev.inputs.bytes = said_bytes;
	memcpy(ev.data, data, bytes < said_bytes ? bytes : said_bytes);
	assert_true(ring_writer__write(&w, &ev, sizeof(ev.inputs) + bytes));
	return ring_reader__drain(r, take, NULL);
}

static void test_lists(void **state)
{
	static const struct {
		uint32_t id, said_bytes;
		size_t bytes; /* the list's, in the ring */
		bool good;
	} cases[] = {
		{1, 7, 8, true},	   {65535, 7, 8, true},	 {1, 0, 0, true},
		{0, 7, 8, false},	   {65536, 7, 8, false}, {UINT32_MAX, 7, 8, false},
		{1, 7, 0, false},	   {1, 7, 16, false},	 {1, 6, 8, false},
		{1, 961, 968, false},	   {1, 9, 8, false},	 {1, UINT32_MAX, 8, false},
		{1, UINT32_MAX, 0, false}, {1, 1, 8, false},
	};
	static uint8_t data[LIST_BYTES];
	uint64_t refused_nr = 0;

	memcpy(data, plain, sizeof(plain));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int got = emit_list(cases[i].id, cases[i].said_bytes, data, cases[i].bytes);

		assert_int_equal(got, cases[i].good);
		refused_nr += !cases[i].good;
		assert_int_equal(help_loss(r, GP_LOSS_RECORD), refused_nr);
	}
}

static void test_what_is_taken(void **state)
{
	assert_int_equal(emit_list(7, sizeof(plain), plain, 8), 1);
	assert_int_equal(seen_bytes, sizeof(seen.list.inputs) + 8);
	assert_int_equal(seen.head.process, HELP_PROCESS);
	assert_int_equal(seen.head.tid, 0);
	assert_int_equal(seen.head.flags, 0);
	assert_int_equal(seen.list.inputs.inputs_id, 7);
	assert_memory_equal(seen.list.data, plain, sizeof(plain));
	assert_int_equal(seen.list.data[sizeof(plain)], 0);
}

static size_t put_doubles(uint8_t *data, int nr)
{
	for (int i = 0; i < nr; i++)
		data[9 * i] = GP_INPUT_DOUBLE;
	return 9 * (size_t)nr;
}

/* As long as allowed, with lists as long as allowed; then with one item more, and one input more.
 */
static void test_longest(void **state)
{
	uint8_t data[LIST_BYTES] = {0};
	size_t nr = 0;

	for (int list = 0; list < 3; list++) {
		data[nr++] = GP_INPUT_SCALAR_LIST;
		data[nr++] = GP_INPUT_ITEMS_MAX;
		nr += put_doubles(data + nr, GP_INPUT_ITEMS_MAX);
	}
	nr += put_doubles(data + nr, 10);
	assert_int_equal(nr, GP_INPUTS_BYTES_MAX);
	assert_int_equal(emit_list(1, GP_INPUTS_BYTES_MAX, data, GP_INPUTS_BYTES_MAX), 1);
	data[1] = GP_INPUT_ITEMS_MAX + 2;
	assert_int_equal(emit_list(1, GP_INPUTS_BYTES_MAX, data, GP_INPUTS_BYTES_MAX), 0);
	memset(data, GP_INPUT_OTHER, sizeof(data));
	data[GP_INPUTS_MAX] = GP_INPUT_CUT;
	assert_int_equal(emit_list(1, GP_INPUTS_MAX + 1, data, GP_INPUTS_MAX + 8), 1);
	assert_int_equal(emit_list(1, GP_INPUTS_MAX + 2, data, GP_INPUTS_MAX + 8), 0);
	assert_int_equal(help_loss(r, GP_LOSS_RECORD), 2);
}

static uint32_t reported_id(uint32_t nr, uint32_t id)
{
	struct gp_ev_op_inputs with = {
		.op = help_op(nr), .inputs_id = id, .same_calls = GP_STACK_FRAMES + 2};

	assert_true(ring_writer__write(&w, &with, sizeof(with)));
	assert_int_equal(ring_reader__drain(r, take, NULL), 1);
	assert_int_equal(seen_bytes, sizeof(with));
	assert_int_equal(seen.op.same_calls, 0);
	return seen.op.inputs_id;
}

static void test_ids_of_ops(void **state)
{
	static const uint32_t unknown[] = {1, 3, 65535, 65536, UINT32_MAX - 1, GP_INPUTS_LOST};
	struct gp_ev_op op = help_op(1);

	assert_int_equal(emit_list(2, sizeof(plain), plain, 8), 1);
	assert_int_equal(reported_id(1, 0), 0);
	assert_int_equal(reported_id(2, 2), 2);
	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
		assert_int_equal(reported_id(3, unknown[i]), GP_INPUTS_LOST);
	assert_true(ring_writer__write(&w, &op, sizeof(op)));
	assert_int_equal(ring_reader__drain(r, take, NULL), 1);
	assert_int_equal(seen_bytes, sizeof(op));
	assert_int_equal(help_loss(r, GP_LOSS_RECORD), 0);
}

/* An op with inputs is validated like one without. */
static void test_spoiled_ops(void **state)
{
	struct {
		struct gp_ev_op_inputs with;
		uint64_t more;
	} ev = {.with = {.op = help_op(1)}};

	assert_true(ring_writer__write(&w, &ev, sizeof(ev)));
	assert_int_equal(ring_reader__drain(r, take, NULL), 0);
	ev.with.op.instance = 1;
	assert_true(ring_writer__write(&w, &ev.with, sizeof(ev.with)));
	assert_int_equal(ring_reader__drain(r, take, NULL), 0);
	ev.with.op = help_op(1);
	ev.with.op.start_ns = ev.with.op.head.time_ns + 1;
	assert_true(ring_writer__write(&w, &ev.with, sizeof(ev.with)));
	assert_int_equal(ring_reader__drain(r, take, NULL), 0);
	assert_int_equal(help_loss(r, GP_LOSS_RECORD), 3);
}

/* Tensors of an op: the instance and the length are validated here, the words by who reads them. */
static void test_tensors(void **state)
{
	struct {
		struct gp_ev_tensors ev;
		uint64_t words[100];
	} t;
	const struct gp_ev_op sane = help_op(1);
	static const struct {
		uint32_t words_nr;
		size_t words;
		bool ours, late, good;
	} cases[] = {
		{0, 0, true, false, true},   {100, 100, true, false, true},
		{1, 2, true, false, false},  {2, 1, true, false, false},
		{1, 1, false, false, false}, {UINT32_MAX, 1, true, false, false},
		{1, 1, true, true, false},
	};
	uint64_t refused_nr = 0;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		memset(&t, 0xee, sizeof(t));
		t.ev.head.kind = GP_EV_TENSORS;
		t.ev.head.tid = sane.head.tid;
		t.ev.head.time_ns = cases[i].late ? 1ULL << 62 : sane.start_ns;
		t.ev.instance = cases[i].ours ? sane.instance : 1;
		t.ev.words_nr = cases[i].words_nr;
		assert_true(ring_writer__write(&w, &t, sizeof(t.ev) + cases[i].words * 8));
		assert_int_equal(ring_reader__drain(r, take, NULL), cases[i].good);
		refused_nr += !cases[i].good;
		assert_int_equal(help_loss(r, GP_LOSS_RECORD), refused_nr);
		if (cases[i].good)
			assert_int_equal(seen.head.flags, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_lists, begin, end),
		cmocka_unit_test_setup_teardown(test_what_is_taken, begin, end),
		cmocka_unit_test_setup_teardown(test_longest, begin, end),
		cmocka_unit_test_setup_teardown(test_ids_of_ops, begin, end),
		cmocka_unit_test_setup_teardown(test_spoiled_ops, begin, end),
		cmocka_unit_test_setup_teardown(test_tensors, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
