/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Looks at a process while gpuprof cannot open what it must read.
 */
#include "inspect/process/process.h"
#include "unit/failing_open.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/resource.h>

#include <cmocka.h>

/* A look that leaves out how a file lies for want of a descriptor would be one for good. */
static void does_not_guess_for_want_of_descriptors(void **state)
{
	struct target_process *p;
	struct reason why = {""};

	open_fails_of = "/libc.so.6";
	open_fails_with = EMFILE;
	assert_int_equal(target_process__new(getpid(), &why, &p), -EMFILE);
	assert_non_null(strstr(why.text, "Too many open files"));
	open_fails_of = NULL;
	assert_int_equal(target_process__new(getpid(), &why, &p), 0);
	open_fails_of = "/libc.so.6";
	/* What is known already need not be opened. */
	assert_int_equal(target_process__update_libraries(p, &why), 0);
	open_fails_of = NULL;
	target_process__free(p);
}

static void emits_a_guess_from_what_it_knows(void **state)
{
	const struct target_library *libc;
	struct target_process *p;
	struct reason why = {""};

	open_fails_of = "/libc.so.6";
	open_fails_with = EIO;
	assert_int_equal(target_process__new(getpid(), &why, &p), 0);
	libc = target_process__library(p, "libc.so.6");
	assert_non_null(libc);
	assert_false(libc->base_known);
	open_fails_of = NULL;
	/* That is a change, though the same lies there. */
	assert_int_equal(target_process__update_libraries(p, &why), 1);
	for (size_t i = 0; i < p->libraries_nr; i++)
		assert_true(p->libraries[i].base_known);
	assert_int_equal(target_process__update_libraries(p, &why), 0);
	target_process__free(p);
}

static void whoever_cannot_be_asked_lives(void **state)
{
	struct rlimit before, none = {0};
	struct target_process *p;
	bool alive;

	assert_int_equal(target_process__new(getpid(), NULL, &p), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none.rlim_max = before.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	alive = target_process__alive(p);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_true(alive);
	target_process__free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(does_not_guess_for_want_of_descriptors),
		cmocka_unit_test(emits_a_guess_from_what_it_knows),
		cmocka_unit_test(whoever_cannot_be_asked_lives),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
