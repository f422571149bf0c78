/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Numbers of the processes of a capture that goes on for as long as one likes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/hash.h"
#include "capture/process/process_table.h"
#include "capture/process/threads.h"

#include <errno.h>
#include <string.h>

static void count_and_free(struct traced_process *m, void *arg)
{
	++*(size_t *)arg;
	free(m);
}

static bool has_exited(const struct traced_process *m)
{
	return m->end == PROCESS_EXITED;
}

static struct traced_process *join(struct process_table *r)
{
	struct traced_process *m = calloc(1, sizeof(*m));

	assert_non_null(m);
	assert_int_equal(process_table__add(r, m), 0);
	assert_ptr_equal(process_table__find(r, m->index), m);
	return m;
}

static void free_all(struct process_table *r)
{
	for (size_t i = 0; i < r->nr; i++)
		free(r->items[i]);
	process_table__done(r);
}

/* Far more processes than a number has room for, of which three are there at a time. */
static void test_numbers_come_again(void **state)
{
	struct process_table *r = calloc(1, sizeof(*r));
	struct traced_process *last[2] = {NULL, NULL}, *first;
	size_t freed_nr = 0;

	assert_non_null(r);
	first = join(r);
	for (uint32_t i = 0; i < 200000; i++) {
		struct traced_process *m = join(r);

		assert_in_range(m->index, 1, 3);
		assert_int_equal(m->serial, i + 1);
		if (last[0])
			last[0]->end = PROCESS_EXITED;
		process_table__sweep(r, has_exited, count_and_free, &freed_nr);
		last[0] = last[1];
		last[1] = m;
	}
	assert_int_equal(freed_nr, 200000 - 2);
	assert_int_equal(r->nr, 3);
	assert_ptr_equal(r->items[0], first);
	assert_int_equal(r->joined_nr, 200001);
	free_all(r);
	free(r);
}

/* The first one leads: nobody else is ever 0. */
static void test_the_first_stays(void **state)
{
	struct process_table *r = calloc(1, sizeof(*r));
	struct traced_process *first = join(r);
	size_t freed_nr = 0;

	first->end = PROCESS_EXITED;
	process_table__sweep(r, has_exited, count_and_free, &freed_nr);
	assert_int_equal(freed_nr, 0);
	assert_int_equal(join(r)->index, 1);
	free_all(r);
	free(r);
}

static void test_full(void **state)
{
	struct process_table *r = calloc(1, sizeof(*r));
	struct traced_process one = {0};
	size_t freed_nr = 0;

	for (size_t i = 0; i < GP_PROCESSES_MAX; i++)
		assert_int_equal(join(r)->index, i);
	assert_int_equal(process_table__next(r), GP_PROCESSES_MAX);
	assert_int_equal(process_table__add(r, &one), -ENOSPC);
	assert_null(process_table__find(r, GP_PROCESSES_MAX));
	r->items[500]->end = r->items[7]->end = PROCESS_EXITED;
	process_table__sweep(r, has_exited, count_and_free, &freed_nr);
	assert_int_equal(freed_nr, 2);
	assert_null(process_table__find(r, 7));
	assert_int_equal(join(r)->index, 7);
	assert_int_equal(join(r)->index, 500);
	free_all(r);
	free(r);
}

/* Two processes of one number, with threads of one number. */
static void test_threads_of_one_number(void **state)
{
	struct gp_ev_thread thread = {.head = {.process = 1, .tid = 9}, .comm = "before"};
	struct threads t = {0};

	assert_int_equal(threads__set(&t, 1, &thread), 0);
	(void)memcpy(thread.comm, "after", sizeof("after"));
	assert_int_equal(threads__set(&t, 70000, &thread), 0);
	assert_string_equal(threads__find(&t, 1, 9)->comm, "before");
	assert_string_equal(threads__find(&t, 70000, 9)->comm, "after");
	assert_null(threads__find(&t, 2, 9));
	threads__done(&t);
}

/* What one source said goes, what others said stays, however the two lie. */
static void test_sources_are_forgotten(void **state)
{
	struct hash h = {0};

	for (uint64_t source = 0; source < 50; source++)
		for (uint64_t id = 1; id <= 100; id++)
			assert_int_equal(hash__set(&h, source << 32 | id, source * 1000 + id), 0);
	for (uint64_t source = 1; source < 50; source += 2)
		hash__delete_high(&h, (uint32_t)source);
	assert_int_equal(h.nr, 25 * 100);
	for (uint64_t source = 0; source < 50; source++)
		for (uint64_t id = 1; id <= 100; id++) {
			const uint64_t *value = hash__find(&h, source << 32 | id);

			assert_int_equal(value != NULL, source % 2 == 0);
			if (value)
				assert_int_equal(*value, source * 1000 + id);
		}
	hash__done(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers_come_again),
		cmocka_unit_test(test_the_first_stays),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_threads_of_one_number),
		cmocka_unit_test(test_sources_are_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
