/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Stacks from the kernel's event to what is printed: line tables as CPython documents them, events
 * that are none, and a recording's stacks in the table and folded.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "capture/symbols/python_code.h"
#include "capture/symbols/stacks.h"
#include "output/format/output.h"
#include "sample.h"

#include <errno.h>

#define LINE(minor, table, first, lasti)                                                           \
	python_line(minor, (const uint8_t *)(table), sizeof(table) - 1, first, lasti)

static int put_frame(struct recording_writer *w, uint32_t id, const char *file,
		     const char *function, uint32_t line)
{
	return recording_writer__frame(
		w, id, &(struct recording_frame){.file = file, .function = function, .line = line});
}

static void test_lines_by_pairs(void **state)
{
	/* 4 bytes of line 10, 6 of 11, 300 of 13, then 12. */
	static const char table[] = "\x04\x01\x06\x02\xff\x00\x2d\xff";

	for (unsigned int minor = 8; minor <= 9; minor++) {
		assert_int_equal(LINE(minor, table, 10, 0), 10);
		assert_int_equal(LINE(minor, table, 10, 3), 10);
		assert_int_equal(LINE(minor, table, 10, 4), 11);
		assert_int_equal(LINE(minor, table, 10, 10), 13);
		assert_int_equal(LINE(minor, table, 10, 309), 13);
		assert_int_equal(LINE(minor, table, 10, 310), 12);
		assert_int_equal(LINE(minor, table, 10, -1), 10);
		assert_int_equal(LINE(minor, "", 10, 8), 10);
	}
}

static void test_lines_by_ranges(void **state)
{
	/* 4 bytes of line 11, 2 of none, 2 of 9. The index counts units of two. */
	static const char table[] = "\x04\x01\x02\x80\x02\xfe";

	assert_int_equal(LINE(10, table, 10, 0), 11);
	assert_int_equal(LINE(10, table, 10, 1), 11);
	assert_int_equal(LINE(10, table, 10, 2), 0);
	assert_int_equal(LINE(10, table, 10, 3), 9);
	assert_int_equal(LINE(10, table, 10, 4), 0);
	assert_int_equal(LINE(10, table, 10, INT32_MAX), 0);
}

static void test_lines_by_entries(void **state)
{
	/* Short form, 2 units; one line on, 1 unit; no columns, +100, 1 unit; none, 1; long, -3, 8.
	 */
	static const char table[] = "\x81\x12"
				    "\xd8\x01\x02"
				    "\xe8\x48\x03"
				    "\xf8"
				    "\xf7\x07\x00\x01\x01";

	for (unsigned int minor = 11; minor <= 14; minor++) {
		assert_int_equal(LINE(minor, table, 10, 0), 10);
		assert_int_equal(LINE(minor, table, 10, 2), 10);
		assert_int_equal(LINE(minor, table, 10, 4), 11);
		assert_int_equal(LINE(minor, table, 10, 6), 11 + 100);
		assert_int_equal(LINE(minor, table, 10, 8), 0);
		assert_int_equal(LINE(minor, table, 10, 10), 111 - 3);
		assert_int_equal(LINE(minor, table, 10, 24), 111 - 3);
		assert_int_equal(LINE(minor, table, 10, 26), 0);
		assert_int_equal(LINE(minor, table, 10, -1), 10);
		assert_int_equal(LINE(minor, "\x01\x02", 10, 0), 0);
	}
}

static void test_hostile_lines(void **state)
{
	uint8_t table[64];
	uint32_t seed = 1;

	for (int round = 0; round < 20000; round++) {
		for (size_t i = 0; i < sizeof(table); i++)
			table[i] = (uint8_t)((seed = seed * 1664525 + 1013904223) >> 24);
		for (unsigned int minor = 8; minor <= 14; minor++)
			assert_true(python_line(minor, table, seed >> 16 & 63, (int32_t)seed,
						(int32_t)(seed >> 20)) <= INT32_MAX);
	}
}

/* An event with one frame. */
struct one {
	struct gp_ev_stack event;
	struct gp_stack_frame frame;
};

static struct one one(uint32_t id, uint32_t frames_nr)
{
	return (struct one){
		.event = {.head = {.kind = GP_EV_STACK}, .stack_id = id, .frames_nr = frames_nr}};
}

static struct names names;

/* One recording that is being written, for the stacks of `s`. */
static void begin(struct stacks *s, struct segments *open, const char *path)
{
	*open = (struct segments){0};
	assert_int_equal(stacks__init(s, open, &names), 0);
	assert_int_equal(segment__new(NULL, path, NULL, &open->current), 0);
}

static struct recording *end(struct segments *open, const char *path)
{
	struct recording *r;

	assert_int_equal(recording_writer__finish(open->current->writer), 0);
	assert_int_equal(recording_writer__place(open->current->writer), 0);
	segment__free(open->current);
	open->current = NULL;
	assert_int_equal(recording__open(path, NULL, &r), 0);
	assert_null(recording__damage(r));
	return r;
}

static void test_events(void **state)
{
	const char *path = sample_path("a.gpuprof");
	struct segments open;
	struct stacks s;
	struct one e = one(1, 1);
	struct recording *r;
	uint32_t flags;
	size_t nr;

	begin(&s, &open, path);
	/* Without code objects no frame has a name, and the stack says so. */
	assert_int_equal(stacks__put(&s, NULL, 1, &e.event, sizeof(e)), 0);
	assert_int_equal(s.incomplete_nr, 1);
	assert_int_equal(stacks__emit(&s, open.current, 1), 0);
	assert_int_equal(stacks__put(&s, NULL, 1, &e.event, sizeof(e) - 1), -EBADMSG);
	assert_int_equal(stacks__put(&s, NULL, 1, &e.event, 8), -EBADMSG);
	e = one(0, 1);
	assert_int_equal(stacks__put(&s, NULL, 1, &e.event, sizeof(e)), -EBADMSG);
	e = one(2, UINT32_MAX);
	assert_int_equal(stacks__put(&s, NULL, 1, &e.event, sizeof(e)), -EBADMSG);
	r = end(&open, path);
	stacks__done(&s);
	assert_non_null(recording__stack(r, 1, &nr, &flags));
	assert_int_equal(nr, 1);
	assert_int_equal(flags, GP_STACK_INCOMPLETE);
	assert_null(recording__stack(r, 2, &nr, NULL));
	assert_int_equal(nr, 0);
	recording__free(r);
}

/* Each source has numbers of its own; the capture's are given out at the first sight of one. */
static void test_numbers(void **state)
{
	const char *path = sample_path("a.gpuprof");
	struct segments open;
	struct stacks s;
	struct one e = one(7, 1);
	struct recording *r;
	size_t nr;

	begin(&s, &open, path);
	assert_int_equal(stacks__number(&s, 0, 0), 0);
	assert_int_equal(stacks__number(&s, 0, 7), 1);
	assert_int_equal(stacks__number(&s, 1, 7), 2);
	assert_int_equal(stacks__number(&s, 0, UINT32_MAX), 3);
	/* Referred to first and known later. */
	for (uint32_t i = 0; i <= 3; i++)
		assert_int_equal(stacks__emit(&s, open.current, i), 0);
	assert_int_equal(stacks__put(&s, NULL, 1, &e.event, sizeof(e)), 0);
	assert_int_equal(stacks__number(&s, 1, 7), 2);
	s.stacks_nr = RECORDING_STACK_IDS - 1;
	assert_int_equal(stacks__number(&s, 2, 7), 0);
	assert_int_equal(s.numbers_lost_nr, 1);
	assert_int_equal(stacks__put(&s, NULL, 2, &e.event, sizeof(e)), 0);
	r = end(&open, path);
	stacks__done(&s);
	assert_null(recording__stack(r, 1, &nr, NULL));
	assert_non_null(recording__stack(r, 2, &nr, NULL));
	recording__free(r);
}

/* Each recording has what its own events refer to. */
static void test_recordings(void **state)
{
	const char *path = sample_path("a.gpuprof");
	const struct recording_frame frame = {.file = "a.py", .function = "f", .line = 7};
	struct frame_list list = {.nr = 1};
	struct segments open;
	uint32_t op, scope;
	struct recording *r;
	struct stacks s;
	size_t nr;

	begin(&s, &open, path);
	assert_int_equal(stacks__add_frame(&s, &frame), 1);
	assert_int_equal(names__number(&names, "aten::mm", ""), 1);
	stacks__set_op(&s, 1, 1, GP_SCOPE_BACKWARD);
	assert_int_equal(stacks__number(&s, 0, 1), 1);
	assert_int_equal(stacks__number(&s, 0, 2), 2);
	list.numbers[0] = 1;
	assert_int_equal(stacks__keep(&s, 1, &list), 0);
	assert_int_equal(stacks__keep(&s, 2, &list), 0);
	assert_int_equal(stacks__emit(&s, open.current, 1), 0);
	assert_int_equal(stacks__emit(&s, open.current, 1), 0);
	r = end(&open, path);
	assert_string_equal(recording__frame(r, 1).function, "f");
	assert_non_null(recording__stack(r, 1, &nr, NULL));
	assert_null(recording__stack(r, 2, &nr, NULL));
	recording__free(r);
	assert_int_equal(segment__new(NULL, path, NULL, &open.current), 0);
	assert_int_equal(stacks__emit(&s, open.current, 2), 0);
	r = end(&open, path);
	stacks__done(&s);
	names__done(&names);
	assert_string_equal(recording__frame(r, 1).function, "f");
	assert_true(recording__frame_op(r, 1, &op, &scope));
	assert_string_equal(recording__name(r, op, NULL), "aten::mm");
	assert_int_equal(scope, GP_SCOPE_BACKWARD);
	assert_null(recording__stack(r, 1, &nr, NULL));
	assert_non_null(recording__stack(r, 2, &nr, NULL));
	recording__free(r);
}

/* What was told in the last recording is known still, what was before that is forgotten; and no
 * number means two stacks in one recording. */
static void test_turns(void **state)
{
	const char *path = sample_path("a.gpuprof");
	struct one e = one(7, 1);
	struct segments open;
	struct frame_list list;
	int64_t numbers[4];
	struct stacks s;

	begin(&s, &open, path);
	for (uint32_t i = 0; i < 4; i++) {
		stacks__poll(&s);
		e.event.stack_id = i + 1;
		assert_int_equal(stacks__put(&s, NULL, 0, &e.event, sizeof(e)), 0);
		numbers[i] = stacks__number(&s, 0, i + 1);
		assert_true(numbers[i] > 0 && numbers[i] < RECORDING_STACK_IDS);
		for (uint32_t k = i < 2 ? 0 : i - 2; k < i; k++)
			assert_int_not_equal(numbers[k], numbers[i]);
		assert_true(stacks__get(&s, (uint32_t)numbers[i], &list));
		if (i)
			assert_int_equal(stacks__number(&s, 0, i), numbers[i - 1]);
		if (i)
			assert_true(stacks__get(&s, (uint32_t)numbers[i - 1], &list));
	}
	assert_int_equal(numbers[3], numbers[0]);
	assert_false(stacks__get(&s, (uint32_t)numbers[1], &list));
	s.stacks_nr = s.now.last;
	assert_int_equal(stacks__number(&s, 0, 9), 0);
	assert_int_equal(s.numbers_lost_nr, 1);
	recording__free(end(&open, path));
	stacks__done(&s);
}

static void write_op(struct recording_writer *w, uint64_t start_ns, uint64_t end_ns, uint32_t stack)
{
	struct gp_ev_op op = {
		.head = {.kind = GP_EV_OP, .tid = 1, .time_ns = end_ns},
		.start_ns = start_ns,
		.instance = start_ns,
		.sequence_nr = -1,
		.name_id = 1,
		.stack_id = stack,
	};

	assert_int_equal(recording_writer__event(w, &op, sizeof(op)), 0);
}

/* Three calls of one op: twice from the same line, by way of two instructions; once from another,
 * in a stack that is not whole. */
static struct recording *three_calls(void)
{
	static const uint32_t frames[][2] = {{1, 3}, {2, 3}, {4, 3}};
	const char *path = sample_path("a.gpuprof");
	struct recording_writer *w;
	struct recording *r;

	assert_int_equal(recording_writer__new(path, NULL, &w), 0);
	assert_int_equal(recording_writer__meta(w, "stacks", "python"), 0);
	assert_int_equal(recording_writer__name(w, 1, "aten::mm", ""), 0);
	assert_int_equal(put_frame(w, 1, "a;b.py", "f", 7), 0);
	assert_int_equal(put_frame(w, 2, "a;b.py", "f", 7), 0);
	assert_int_equal(put_frame(w, 3, "main.py", "<module>", 1), 0);
	assert_int_equal(put_frame(w, 4, "a;b.py", "g\tx", 9), 0);
	assert_int_equal(put_frame(w, RECORDING_STACK_IDS, "", "", 1), -EINVAL);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(recording_writer__stack(w, i + 1, i == 2, frames[i], 2), 0);
		write_op(w, 10000 * (i + 1), 10000 * (i + 1) + 1000 * (i + 1), i + 1);
	}
	assert_int_equal(recording_writer__stack(w, RECORDING_STACK_IDS, 0, frames[0], 2), -EINVAL);
	assert_int_equal(recording_writer__stack(w, 9, 0, frames[0], RECORDING_STACK_FRAMES + 1),
			 -EINVAL);
	assert_int_equal(recording_writer__finish(w), 0);
	recording_writer__free(w);
	assert_int_equal(recording__open(path, NULL, &r), 0);
	assert_null(recording__damage(r));
	return r;
}

static void test_outputs(void **state)
{
	const struct table_options by_stack = {.by_stack = 1};
	const struct output_table_options text = {.limit = -1};
	struct recording *r = three_calls();
	struct timeline *t;
	struct table *table;
	struct sink *sink;
	const char *got;
	size_t bytes;

	assert_int_equal(timeline__new(r, NULL, &t), 0);
	assert_int_equal(table__new(t, &by_stack, NULL, &table), 0);
	assert_int_equal(table->rows.nr, 2);
	assert_int_equal(table->rows.items[0].calls, 2);
	assert_int_equal(table->rows.items[0].stack_nr, 1);
	assert_int_equal(table->rows.items[1].calls, 1);
	assert_int_equal(sink__new_memory(&sink), 0);
	assert_int_equal(output_table_text(sink, table, &text), 0);
	got = sink__bytes(sink, &bytes);
	/* As wide as the longest frame and four more, left aligned, an empty line after each row.
	 */
	assert_non_null(strstr(got, "  Source Location     \n"));
	assert_non_null(strstr(got, "           2  a;b.py(7): f        \n   "));
	assert_non_null(strstr(got, "           1  a;b.py(9): g?x      \n   "));
	sink__free(sink);
	assert_int_equal(sink__new_memory(&sink), 0);
	assert_int_equal(output_stacks(sink, t, NULL), 0);
	got = sink__bytes(sink, &bytes);
	assert_int_equal(bytes, strlen(got));
	assert_string_equal(got, "main.py(1):_<module>;a_b.py(7):_f 1\n"
				 "main.py(1):_<module>;a_b.py(7):_f 2\n"
				 "[truncated];main.py(1):_<module>;a_b.py(9):_g_x 3\n");
	sink__free(sink);
	/* No GPU work, no lines. */
	assert_int_equal(sink__new_memory(&sink), 0);
	assert_int_equal(output_stacks(sink, t, "self_cuda_time_total"), 0);
	(void)sink__bytes(sink, &bytes);
	assert_int_equal(bytes, 0);
	sink__free(sink);
	table__free(table);
	timeline__free(t);
	recording__free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines_by_pairs),	 cmocka_unit_test(test_lines_by_ranges),
		cmocka_unit_test(test_lines_by_entries), cmocka_unit_test(test_hostile_lines),
		cmocka_unit_test(test_events),		 cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_recordings),	 cmocka_unit_test(test_turns),
		cmocka_unit_test(test_outputs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
