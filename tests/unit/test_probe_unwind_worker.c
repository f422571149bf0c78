/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Unwind tables by a thread of its own: each that was asked for comes once, in order, as it would
 * without the thread; one that cannot be made comes with its error.
 */
#include "probe/unwind/unwind_worker.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "inspect/unwind/unwind_cache.h"

static const char here[] = "/proc/self/exe";
static const struct file_key one = {.inode = 1}, two = {.inode = 2}, vdso = {0};

static void take(struct unwind_worker *w, const struct file_key *key, int err,
		 struct unwind_table *ret_table)
{
	struct unwind_made made;

	assert_true(unwind_worker__take(w, true, &made));
	assert_memory_equal(&made.key, key, sizeof(*key));
	assert_int_equal(made.err, err);
	*ret_table = made.table;
}

static void test_each_comes_once(void **state)
{
	struct unwind_worker *w = unwind_worker__new(NULL);
	struct unwind_table expected = {0}, table;
	struct unwind_made made;
	struct reason why;
	struct elf_file *f;

	assert_int_equal(elf_file__open(here, &why, &f), 0);
	assert_int_equal(unwind_cache_get(f, NULL, &expected), 0);
	elf_file__free(f);
	assert_false(unwind_worker__take(w, true, &made));
	assert_int_equal(unwind_worker__ask(w, &one, here), 0);
	assert_int_equal(unwind_worker__ask(w, &two, "/nowhere"), 0);
	assert_int_equal(unwind_worker__ask(w, &vdso, NULL), 0);
	assert_int_equal(unwind_worker__ask(w, &one, here), 0);
	take(w, &one, 0, &table);
	assert_int_equal(table.words_nr, expected.words_nr);
	assert_memory_equal(table.words, expected.words,
			    expected.words_nr * sizeof(*expected.words));
	unwind_table__done(&table);
	take(w, &two, -ENOENT, &table);
	assert_null(table.words);
	take(w, &vdso, 0, &table);
	assert_true(table.rows_nr > 0);
	unwind_table__done(&table);
	assert_false(unwind_worker__take(w, true, &made));
	/* What was taken may be asked for again. */
	assert_int_equal(unwind_worker__ask(w, &one, here), 0);
	take(w, &one, 0, &table);
	unwind_table__done(&table);
	unwind_table__done(&expected);
	unwind_worker__free(w);
}

static void test_end_with_work_left(void **state)
{
	struct unwind_worker *w = unwind_worker__new(NULL);

	for (uint64_t i = 0; i < 20; i++)
		assert_int_equal(unwind_worker__ask(w, &(struct file_key){.inode = i}, here), 0);
	unwind_worker__free(w);
	unwind_worker__free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_comes_once),
		cmocka_unit_test(test_end_with_work_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
