/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The collector's ring with both ends well behaved: order, wrap-around, a full ring, many writers,
 * writers that never finish, names, annotations.
 */
#include "collector/runtime/names.h"
#include "collector/torch/async_ops.h"
#include "common/clock.h"
#include "unit/ring_ends.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define SMALL	     4096U
#define OP_BYTES     (sizeof(struct gp_ring_slot) + sizeof(struct gp_ev_op))
#define WRITERS	     4
#define PER_WRITER   20000U
#define ENOUGH_BEATS 1000

static void test_round_trip(void **state)
{
	struct names *names = names__new(1);
	const struct name *name;
	struct gp_ev_op op;
	struct ends e;

	assert_int_equal(ends_open(&e, SMALL), 0);
	assert_int_equal(e.w.page->process, HELP_PROCESS);
	name = names__get(names, &e.w, "aten::add");
	assert_non_null(name);
	op = help_op(7);
	op.name_id = name->id;
	op.parent = HELP_PREFIX | 1ULL << 32 | 6;
	op.sequence_nr = 41;
	op.forward_thread = 3;
	op.scope = GP_SCOPE_BACKWARD;
	op.thread_number = 2;
	op.stack_id = 99;
	op.head.process = 1234;
	op.head.flags = 0xff;
	assert_true(ring_writer__write(&e.w, &op, sizeof(op)));
	assert_int_equal(ends_drain(&e), 2);
	assert_string_equal(e.seen.last_name, "aten::add");
	assert_int_equal(e.seen.last_name_id, name->id);
	assert_int_equal(e.seen.last_op.name_id, name->id);
	assert_true(e.seen.last_op.instance == op.instance && e.seen.last_op.parent == op.parent);
	assert_true(e.seen.last_op.start_ns == op.start_ns);
	assert_true(e.seen.last_op.head.time_ns == op.head.time_ns);
	assert_int_equal(e.seen.last_op.sequence_nr, 41);
	assert_int_equal(e.seen.last_op.forward_thread, 3);
	assert_int_equal(e.seen.last_op.scope, GP_SCOPE_BACKWARD);
	assert_int_equal(e.seen.last_op.thread_number, 2);
	assert_int_equal(e.seen.last_op.head.tid, op.head.tid);
	/* Fields that the process must not decide. */
	assert_int_equal(e.seen.last_op.head.process, HELP_PROCESS);
	assert_int_equal(e.seen.last_op.stack_id, 0);
	assert_int_equal(e.seen.last_op.head.flags, GP_OP_CALLBACK | GP_OP_EXCEPTION | GP_OP_ASYNC);
	assert_int_equal(ends_drain(&e), 0);
	names__free(names);
	ends_close(&e);
}

/* Names of every length shift the positions through every 8 bytes of the ring's end. */
static void test_wrap_around(void **state)
{
	static char text[NAMES_TEXT_BYTES + 10];
	struct names *names = names__new(1);
	struct ends e;
	uint32_t nr;

	assert_int_equal(ends_open(&e, 4 * SMALL), 0);
	for (nr = 1; nr <= 2 * sizeof(text); nr++) {
		size_t bytes = 1 + nr % (sizeof(text) - 1);
		int lead;

		memset(text, 'a' + (int)(nr % 26), bytes);
		text[bytes] = '\0';
		lead = snprintf(text, sizeof(text), "%u.", nr);
		if ((size_t)lead < bytes)
			text[lead] = '-';
		assert_non_null(names__get(names, &e.w, text));
		assert_true(ends_write_op(&e, nr));
		assert_int_equal(ends_drain(&e), 2);
		text[NAMES_TEXT_BYTES] = '\0';
		assert_string_equal(e.seen.last_name, text);
		assert_int_equal((uint32_t)e.seen.last_op.instance, nr);
	}
	assert_int_equal(help_loss(e.r, GP_LOSS_COLLECTOR_FULL), 0);
	assert_int_equal(help_loss(e.r, GP_LOSS_RECORD), 0);
	names__free(names);
	ends_close(&e);
}

/* Half of the ring was filled since the last drain: the next is due in half of that time. */
static void test_patience(void **state)
{
	uint64_t before_ns, after_ns, most_ns;
	struct ends e;

	assert_int_equal(ends_open(&e, SMALL), 0);
	assert_int_equal(ends_drain(&e), 0);
	for (int round = 0; round < 3; round++) {
		before_ns = clock_now_ns();
		assert_int_equal(ends_drain(&e), 0);
		(void)usleep(20000);
		for (uint32_t nr = 1; nr <= SMALL / OP_BYTES / 2; nr++)
			assert_true(ends_write_op(&e, nr));
		assert_true(ends_drain(&e) > 0);
		after_ns = clock_now_ns();
		most_ns = (after_ns - before_ns) / 2;
		assert_in_range(ring_reader__drain_deadline_ns(e.r), 1000000,
				most_ns + most_ns / 8);
	}
	/* Nothing came: the time grows, by no more than has passed. */
	most_ns = ring_reader__drain_deadline_ns(e.r);
	(void)usleep(30000);
	assert_int_equal(ends_drain(&e), 0);
	assert_in_range(ring_reader__drain_deadline_ns(e.r), 30000000,
			most_ns + clock_now_ns() - before_ns);
	ends_close(&e);
}

static void test_lost_before_the_beginning(void **state)
{
	struct ends e;

	assert_int_equal(ends_open(&e, SMALL), 0);
	while (ends_write_op(&e, 1))
		;
	assert_int_equal(help_loss(e.r, GP_LOSS_COLLECTOR_FULL), 1);
	ring_reader__begin(e.r);
	assert_int_equal(help_loss(e.r, GP_LOSS_COLLECTOR_FULL), 0);
	assert_false(ends_write_op(&e, 1));
	assert_int_equal(help_loss(e.r, GP_LOSS_COLLECTOR_FULL), 1);
	ends_close(&e);
}

static void test_no_room(void **state)
{
	uint32_t fit = SMALL / OP_BYTES;
	struct ends e;

	assert_int_equal(ends_open(&e, SMALL), 0);
	for (uint32_t round = 0; round < 50; round++) {
		for (uint32_t nr = 1; nr <= fit + 3; nr++)
			assert_int_equal(ends_write_op(&e, nr), nr <= fit);
		assert_int_equal(ends_drain(&e), fit);
		assert_int_equal((uint32_t)e.seen.last_op.instance, fit);
		assert_int_equal(help_loss(e.r, GP_LOSS_COLLECTOR_FULL), 3 * (round + 1));
	}
	ends_close(&e);
}

static void test_stop_in_the_middle(void **state)
{
	struct ends e;

	assert_int_equal(ends_open(&e, SMALL), 0);
	for (uint32_t nr = 1; nr <= 5; nr++)
		assert_true(ends_write_op(&e, nr));
	e.seen.stop_after = 2;
	assert_int_equal(ends_drain(&e), 77);
	assert_int_equal(e.seen.ops_nr, 2);
	assert_int_equal(ends_drain(&e), 3);
	assert_int_equal(e.seen.ops_nr, 5);
	ends_close(&e);
}

struct writer {
	struct ends *e;
	uint32_t number; /* of the thread, in instances */
	uint32_t written;
};

static void *write_many(void *arg)
{
	struct writer *me = arg;

	for (uint32_t nr = 1; nr <= PER_WRITER; nr++) {
		struct gp_ev_op op = help_op(nr);

		op.instance = HELP_PREFIX | (uint64_t)me->number << 32 | nr;
		me->written += ring_writer__write(&me->e->w, &op, sizeof(op));
	}
	return NULL;
}

struct order {
	uint32_t last[WRITERS + 1];
	uint32_t nr[WRITERS + 1];
};

static int check_order(const void *event, size_t bytes, void *arg)
{
	const struct gp_ev_op *op = event;
	struct order *order = arg;
	uint32_t number = (uint32_t)(op->instance >> 32) & 0xfffff;
	uint32_t nr = (uint32_t)op->instance;

	assert_int_equal(bytes, sizeof(*op));
	assert_in_range(number, 1, WRITERS);
	assert_true(nr > order->last[number]);
	order->last[number] = nr;
	order->nr[number]++;
	return 0;
}

static void test_many_writers(void **state)
{
	struct writer writers[WRITERS];
	struct order order = {{0}, {0}};
	pthread_t threads[WRITERS];
	uint64_t written = 0, lost;
	struct ends e;
	int nr;

	assert_int_equal(ends_open(&e, 16 * SMALL), 0);
	for (uint32_t i = 0; i < WRITERS; i++) {
		writers[i] = (struct writer){&e, i + 1, 0};
		assert_int_equal(pthread_create(&threads[i], NULL, write_many, &writers[i]), 0);
	}
	/* Every write found room or was counted: the sum shows when all are done. */
	do {
		nr = ring_reader__drain(e.r, check_order, &order);
		assert_true(nr >= 0);
		written += (uint64_t)nr;
		lost = help_loss(e.r, GP_LOSS_COLLECTOR_FULL);
		(void)sched_yield();
	} while (written + lost < (uint64_t)WRITERS * PER_WRITER);
	for (uint32_t i = 0; i < WRITERS; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		assert_int_equal(order.nr[i + 1], writers[i].written);
	}
	assert_int_equal(ring_reader__drain(e.r, check_order, &order), 0);
	assert_int_equal(help_loss(e.r, GP_LOSS_RECORD), 0);
	ends_close(&e);
}

static void test_slow_writer_is_waited_for(void **state)
{
	struct gp_ev_op op = help_op(1);
	uint64_t position;
	struct ends e;

	assert_int_equal(ends_open(&e, SMALL), 0);
	op.start_ns = op.head.time_ns = clock_now_ns();
	assert_true(ring_writer__reserve(&e.w, sizeof(op), &position));
	assert_true(ends_write_op(&e, 2));
	/* However often we read: the collector's own thread has not run either. */
	for (int i = 0; i < ENOUGH_BEATS; i++)
		assert_int_equal(ends_drain(&e), 0);
	ring_writer__fill(&e.w, position, 0, &op, sizeof(op));
	ring_writer__commit(&e.w, position);
	assert_int_equal(ends_drain(&e), 2);
	assert_int_equal(help_loss(e.r, GP_LOSS_RECORD), 0);
	ends_close(&e);
}

static void test_dead_writer_is_skipped(void **state)
{
	uint64_t position;
	struct ends e;

	assert_int_equal(ends_open(&e, SMALL), 0);
	/* Twice round the ring. */
	for (uint32_t nr = 1; nr <= 2 * SMALL / OP_BYTES; nr++) {
		assert_true(ring_writer__reserve(&e.w, sizeof(struct gp_ev_op), &position));
		assert_true(ends_write_op(&e, nr));
		assert_int_equal(ends_drain(&e), 0);
		e.w.page->beat += ENOUGH_BEATS;
		assert_int_equal(ends_drain(&e), 1);
		assert_int_equal((uint32_t)e.seen.last_op.instance, nr);
		assert_int_equal(help_loss(e.r, GP_LOSS_RECORD), nr);
	}
	ends_close(&e);
}

/* A writer that was killed before it stored its event's length. */
static void test_dead_writer_without_a_size(void **state)
{
	struct ends e;

	assert_int_equal(ends_open(&e, SMALL), 0);
	assert_true(ends_write_op(&e, 1));
	e.w.page->head += OP_BYTES;
	assert_true(ends_write_op(&e, 2));
	assert_int_equal(ends_drain(&e), 1);
	ring_reader__process_gone(e.r);
	assert_int_equal(ends_drain(&e), 1);
	assert_int_equal((uint32_t)e.seen.last_op.instance, 2);
	assert_int_equal(help_loss(e.r, GP_LOSS_RECORD), 1);
	/* The same with nothing complete after it. */
	e.w.page->head += OP_BYTES;
	assert_int_equal(ends_drain(&e), 0);
	assert_int_equal(help_loss(e.r, GP_LOSS_RECORD), 2);
	assert_true(ends_write_op(&e, 3));
	assert_int_equal(ends_drain(&e), 1);
	ends_close(&e);
}

static void test_names(void **state)
{
	struct names *names = names__new(1);
	const struct name *a, *b;
	struct ends e;

	assert_int_equal(ends_open(&e, SMALL), 0);
	a = names__get(names, &e.w, "aten::mm");
	b = names__get(names, &e.w, "aten::addmm");
	assert_non_null(a);
	assert_non_null(b);
	assert_true(a->id && b->id && a->id != b->id);
	assert_ptr_equal(names__get(names, &e.w, "aten::mm"), a);
	assert_int_equal(ends_drain(&e), 2);
	/* No room for the announcement: no id, and none is used up. */
	while (ends_write_op(&e, 1))
		;
	for (int i = 0; i < 100000; i++)
		assert_null(names__get(names, &e.w, "aten::bmm"));
	assert_true(ends_drain(&e) > 0);
	assert_int_equal(names__get(names, &e.w, "aten::bmm")->id, 3);
	assert_int_equal(ends_drain(&e), 1);
	assert_string_equal(e.seen.last_name, "aten::bmm");
	names__free(names);
	ends_close(&e);
}

/* A process must not be able to make gpuprof keep names without bound. */
static void test_names_end(void **state)
{
	struct names *names = names__new(1);
	uint32_t nr = 0;
	char text[300];
	struct ends e;

	assert_int_equal(ends_open(&e, 16 * SMALL), 0);
	memset(text, 'x', sizeof(text));
	for (;; nr++) {
		(void)snprintf(text, sizeof(text), "%0250u", nr);
		if (!names__get(names, &e.w, text))
			break;
		assert_int_equal(ends_drain(&e), 1);
	}
	assert_in_range(nr, 10000, 65535);
	assert_int_equal(help_loss(e.r, GP_LOSS_NAMES), 1);
	assert_int_equal(help_loss(e.r, GP_LOSS_COLLECTOR_FULL), 0);
	names__free(names);
	ends_close(&e);
}

/* Nor may it keep too many itself: there is room for fewer of the longest. */
static void test_long_names_end(void **state)
{
	struct names *names = names__new(1);
	static char text[NAMES_TEXT_BYTES + 1];
	uint32_t nr = 0;
	struct ends e;

	assert_int_equal(ends_open(&e, 16 * SMALL), 0);
	for (;; nr++) {
		(void)snprintf(text, sizeof(text), "%0*u", NAMES_TEXT_BYTES, nr);
		if (!names__get(names, &e.w, text))
			break;
		assert_int_equal(ends_drain(&e), 1);
	}
	assert_in_range(nr, 5000, 24000);
	assert_null(names__get(names, &e.w, text));
	assert_int_equal(ends_drain(&e), 0);
	assert_non_null(names__get(names, &e.w, "aten::relu"));
	assert_int_equal(help_loss(e.r, GP_LOSS_NAMES), 2);
	assert_int_equal(help_loss(e.r, GP_LOSS_RECORD), 0);
	names__free(names);
	ends_close(&e);
}

static void test_annotations(void **state)
{
	struct open_op a = {.record = &a, .instance = 1, .async_place = NOT_ASYNC};
	struct open_op b = {.record = &b, .instance = 2, .async_place = NOT_ASYNC};
	struct async_op got;

	async_ops__clear();
	async_ops__add(&a, 10, 1);
	async_ops__add(&b, 20, 2);
	assert_true(a.async_place != NOT_ASYNC && b.async_place != NOT_ASYNC &&
		    a.async_place != b.async_place);
	assert_true(async_ops__holds(&a));
	assert_true(async_ops__take_record(&b, &got));
	assert_int_equal(got.tid, 20);
	assert_int_equal(got.op.instance, 2);
	assert_false(async_ops__holds(&b));
	assert_false(async_ops__take(&b));
	assert_false(async_ops__take_record(&b, &got));
	assert_true(async_ops__take(&a));
	assert_false(async_ops__take(&a));
	/* A full table refuses the next one. */
	for (uint64_t i = 0; i < NOT_ASYNC; i++) {
		struct open_op op = {.record = &op, .instance = 3 + i, .async_place = NOT_ASYNC};

		async_ops__add(&op, 1, 1);
		if (op.async_place == NOT_ASYNC)
			break;
		assert_true(i < 10000);
	}
	async_ops__clear();
}

/* A process that closes every descriptor and reuses their numbers. */
static void test_descriptor_of_the_target(void **state)
{
	struct ring_writer w;
	int pipes[2];

	assert_int_equal(ring_writer__open(&w, SMALL), 0);
	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(dup2(pipes[1], w.fd), w.fd);
	(void)close(pipes[1]);
	pipes[1] = w.fd;
	assert_int_equal(ring_writer__populate(&w), -EBADF);
	ring_writer__close(&w);
	assert_int_equal(write(pipes[1], "x", 1), 1);
	(void)close(pipes[0]);
	(void)close(pipes[1]);
	/* The ring's own descriptor is closed. */
	assert_int_equal(ring_writer__open(&w, SMALL), 0);
	pipes[0] = w.fd;
	assert_int_equal(ring_writer__populate(&w), 0);
	ring_writer__close(&w);
	assert_int_equal(close(pipes[0]), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_wrap_around),
		cmocka_unit_test(test_patience),
		cmocka_unit_test(test_lost_before_the_beginning),
		cmocka_unit_test(test_no_room),
		cmocka_unit_test(test_stop_in_the_middle),
		cmocka_unit_test(test_many_writers),
		cmocka_unit_test(test_slow_writer_is_waited_for),
		cmocka_unit_test(test_dead_writer_is_skipped),
		cmocka_unit_test(test_dead_writer_without_a_size),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_names_end),
		cmocka_unit_test(test_long_names_end),
		cmocka_unit_test(test_annotations),
		cmocka_unit_test(test_descriptor_of_the_target),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
