/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What CUDA has given to others than PyTorch's allocator, on timelines made by hand.
 */
#include "output/format/output.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdlib.h>

#include "output/memory/memory_usage.h"
#include "unit/memory_example.h"

#define M (1LL << 20)

static void add_given(struct timeline *t, uint64_t time_us, int64_t bytes, uint32_t op,
		      uint32_t thread)
{
	(void)example__alloc_on(t, time_us, bytes, op, thread, TL_DEVICE_CUDA_CALLS, -1);
}

static void add_piece(struct timeline *t, uint64_t time_us, int64_t bytes, uint32_t op)
{
	(void)example__alloc_on(t, time_us, bytes, op, 0, TL_DEVICE_CUDA_PHYSICAL, -1);
}

static void add_report(struct timeline *t, uint64_t time_us, int64_t bytes, uint32_t op,
		       uint32_t thread, uint64_t reserved)
{
	uint32_t event = example__alloc_on(t, time_us, bytes, op, thread, GP_DEVICE_CUDA, 0);

	t->memory.items[event].allocated_bytes = 1;
	t->memory.items[event].reserved_bytes = reserved;
}

static void assert_outside(struct timeline *t, int64_t at_end, int64_t at_peak)
{
	struct memory_usage u;
	const struct memory_device *d = NULL;

	assert_int_equal(memory_usage__init(&u, t), 0);
	for (size_t i = 0; i < u.devices.nr; i++)
		if (u.devices.items[i].type == TL_DEVICE_CUDA_CALLS)
			d = &u.devices.items[i];
	assert_true(d && d->has_outside);
	assert_int_equal(d->outside_end_bytes, at_end);
	assert_int_equal(d->outside_peak_bytes, at_peak);
	memory_usage__done(&u);
	example__done(t);
}

/* The program's own before PyTorch's first report: PyTorch's are the call within the reported
 * allocation, and what it had before the recording. */
static void outside_before_the_first_report(void **state)
{
	struct timeline t;
	uint32_t op, other;

	example__init(&t);
	op = example__op(&t, "aten::empty", TL_NONE, 0);
	add_given(&t, 10, 64 * M, TL_NONE, 0);
	add_report(&t, 20, 512, op, 0, 90 * M);
	add_report(&t, 30, 512, op, 0, 90 * M);
	assert_outside(&t, 64 * M, 64 * M);

	example__init(&t);
	op = example__op(&t, "aten::empty", TL_NONE, 0);
	other = example__thread(&t, 0);
	add_given(&t, 10, 64 * M, TL_NONE, 0);
	add_given(&t, 11, 3 * M, op, 0);
	add_given(&t, 12, 20 * M, op, 0);
	add_given(&t, 13, 5 * M, op, other);
	add_report(&t, 20, 4 * M, op, 0, 90 * M);
	assert_outside(&t, 72 * M, 72 * M);

	/* Outside of any op as well: then it is the last one. */
	example__init(&t);
	add_given(&t, 10, 64 * M, TL_NONE, 0);
	add_given(&t, 12, 20 * M, TL_NONE, 0);
	add_report(&t, 20, 4 * M, TL_NONE, 0, 20 * M);
	assert_outside(&t, 64 * M, 64 * M);
}

/* Too small for it, more than there is, or something came between: not PyTorch's. */
static void what_cannot_be_of_the_report_is_outside(void **state)
{
	struct timeline t;

	example__init(&t);
	add_given(&t, 10, 2 * M, TL_NONE, 0);
	add_report(&t, 20, 4 * M, TL_NONE, 0, 90 * M);
	assert_outside(&t, 2 * M, 2 * M);

	example__init(&t);
	add_given(&t, 10, 99 * M, TL_NONE, 0);
	add_report(&t, 20, 4 * M, TL_NONE, 0, 90 * M);
	assert_outside(&t, 99 * M, 99 * M);

	example__init(&t);
	add_given(&t, 10, 20 * M, TL_NONE, 0);
	(void)example__alloc(&t, 15, 100, TL_NONE);
	add_report(&t, 20, 4 * M, TL_NONE, 0, 90 * M);
	assert_outside(&t, 20 * M, 20 * M);

	/* The first report is of a free. */
	example__init(&t);
	add_given(&t, 10, 20 * M, TL_NONE, 0);
	add_report(&t, 20, -4 * M, TL_NONE, 0, 90 * M);
	assert_outside(&t, 20 * M, 20 * M);
}

/* Pieces of one size, as many as the allocation needs beside what is mapped. */
static void pieces_of_the_first_report(void **state)
{
	struct timeline t;

	example__init(&t);
	add_given(&t, 5, 7 * M, TL_NONE, 0);
	add_piece(&t, 8, 16 * M, TL_NONE);
	for (uint32_t i = 0; i < 3; i++)
		add_piece(&t, 10 + i, 20 * M, TL_NONE);
	add_report(&t, 20, 70 * M, TL_NONE, 0, 80 * M);
	add_piece(&t, 30, 20 * M, TL_NONE);
	add_report(&t, 40, 10 * M, TL_NONE, 0, 100 * M);
	assert_outside(&t, 23 * M, 23 * M);
}

/* empty_cache(): what was there before the recording goes without a size; what came since, with
 * one. Nothing of it is anyone's outside. */
static void frees_without_a_report(void **state)
{
	struct timeline t;
	uint32_t given;

	example__init(&t);
	add_given(&t, 5, 7 * M, TL_NONE, 0);
	given = example__alloc_on(&t, 10, 20 * M, TL_NONE, 0, TL_DEVICE_CUDA_CALLS, -1);
	add_report(&t, 20, 4 * M, TL_NONE, 0, 90 * M);
	(void)example__free(&t, 30, given);
	add_report(&t, 40, 100, TL_NONE, 0, 2 * M);
	add_given(&t, 50, 20 * M, TL_NONE, 0);
	add_report(&t, 60, 4 * M, TL_NONE, 0, 22 * M);
	assert_outside(&t, 7 * M, 7 * M);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(outside_before_the_first_report),
		cmocka_unit_test(what_cannot_be_of_the_report_is_outside),
		cmocka_unit_test(pieces_of_the_first_report),
		cmocka_unit_test(frees_without_a_report),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
