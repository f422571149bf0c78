/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Which function lies at an address, by a copy of this program that a made-up process has at
 * address 0: while the file can be read, while it cannot, and after it was put away.
 */
#include "capture/symbols/native_code.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include <cmocka.h>

#include "capture/process/process_table.h"
#include "common/clock.h"
#include "sample.h"
#include "unit/failing_open.h"

#define LIMIT_NS (60 * SECOND_NS)

struct example {
	struct target_library library;
	struct target_process process;
	struct process_table *nobody, *somebody;
	struct traced_process member;
	struct native_codes *codes;
	uint64_t address;
};

void gp_test_function(void);

__attribute__((noinline)) void gp_test_function(void)
{
	__asm__ volatile("nop");
}

static uint64_t own_address(void)
{
	uint64_t at = (uint64_t)(uintptr_t)gp_test_function, address = 0;
	struct target_process *p;
	struct reason why;

	assert_int_equal(target_process__new(getpid(), &why, &p), 0);
	for (size_t i = 0; i < p->libraries_nr; i++)
		if (p->libraries[i].start <= at && at < p->libraries[i].end)
			address = at - p->libraries[i].base;
	target_process__free(p);
	assert_true(address);
	return address;
}

static void copy_self(const char *to)
{
	size_t bytes;
	uint8_t *self = sample_read_file("/proc/self/exe", &bytes);

	sample_write_file(to, self, bytes);
	free(self);
}

static int make(void **state)
{
	struct example *e = calloc(1, sizeof(*e));
	const char *path = sample_path("code.so");
	struct stat st;

	assert_non_null(e);
	copy_self(path);
	assert_int_equal(stat(path, &st), 0);
	e->library = (struct target_library){
		.path = path,
		.open_path = path,
		.end = 1ULL << 40,
		.base_known = true,
		.device = st.st_dev,
		.inode = st.st_ino,
	};
	e->process = (struct target_process){.libraries = &e->library, .libraries_nr = 1};
	e->member.process = &e->process;
	e->nobody = calloc(1, sizeof(*e->nobody));
	e->somebody = calloc(1, sizeof(*e->somebody));
	assert_non_null(e->nobody);
	assert_non_null(e->somebody);
	assert_int_equal(process_table__add(e->somebody, &e->member), 0);
	e->codes = native_codes__new();
	assert_non_null(e->codes);
	e->address = own_address();
	*state = e;
	return 0;
}

static int drop(void **state)
{
	struct example *e = *state;

	open_fails_of = NULL;
	native_codes__free(e->codes);
	process_table__done(e->somebody);
	process_table__done(e->nobody);
	free(e->somebody);
	free(e->nobody);
	(void)unlink(e->library.path);
	free(e);
	return 0;
}

static struct native_place place(struct example *e)
{
	struct native_place p;

	assert_int_equal(native_codes__place(e->codes, &e->process, e->address, &p), 0);
	return p;
}

static uint32_t named(struct example *e)
{
	struct native_place p = place(e);

	assert_false(p.unread);
	assert_non_null(p.symbol);
	assert_string_equal(p.symbol, "gp_test_function");
	assert_int_equal(p.address, e->address);
	assert_true(native_codes__has(e->codes, p.module));
	return p.module;
}

static void turn(struct example *e, const struct process_table *members, int times)
{
	struct file_users users = process_table__file_users(members);

	for (int i = 0; i < times; i++)
		native_codes__poll(e->codes, &users);
}

static void test_unread_for_a_while(void **state)
{
	struct example *e = *state;
	uint64_t until_ns = clock_now_ns() + LIMIT_NS;
	struct native_place p;

	open_fails_of = e->library.path;
	open_fails_with = EMFILE;
	p = place(e);
	assert_true(p.unread);
	assert_null(p.symbol);
	assert_string_equal(p.path, e->library.path);
	open_fails_of = NULL;
	while (place(e).unread && clock_now_ns() < until_ns)
		(void)usleep(10000);
	assert_int_equal(named(e), p.module);
}

static void test_no_program_is_no_more_tomorrow(void **state)
{
	struct example *e = *state;
	struct native_place p;

	sample_write_file(e->library.path, "no program", 10);
	p = place(e);
	assert_false(p.unread);
	assert_null(p.symbol);
}

/* Addresses in it would lead to other functions. */
static void test_a_guessed_bias(void **state)
{
	struct example *e = *state;

	e->library.base_known = false;
	assert_true(place(e).unread);
}

static void test_put_away(void **state)
{
	struct example *e = *state;
	uint32_t module = named(e);

	turn(e, e->somebody, 10);
	assert_true(native_codes__has(e->codes, module));
	assert_int_equal(named(e), module);
	turn(e, e->nobody, 2);
	assert_true(native_codes__has(e->codes, module));
	assert_int_equal(named(e), module);
	turn(e, e->nobody, 3);
	assert_false(native_codes__has(e->codes, module));
	assert_int_equal(named(e), module);
}

/* One that has ended maps nothing. */
static void test_members_that_have_ended(void **state)
{
	struct example *e = *state;
	uint32_t module = named(e);

	e->member.end = PROCESS_EXITED;
	turn(e, e->somebody, 3);
	assert_false(native_codes__has(e->codes, module));
}

/* Frames of what was there before would be taken for its. */
static void test_another_file_in_its_place(void **state)
{
	const struct timespec times[] = {{.tv_sec = 1}, {.tv_sec = 1}};
	struct example *e = *state;
	uint32_t module = named(e), other;

	turn(e, e->nobody, 3);
	assert_int_equal(utimensat(AT_FDCWD, e->library.path, times, 0), 0);
	other = named(e);
	assert_int_not_equal(other, module);
	assert_false(native_codes__has(e->codes, module));
	turn(e, e->nobody, 3);
	assert_int_equal(named(e), other);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, make, drop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_unread_for_a_while),	    TEST(test_no_program_is_no_more_tomorrow),
		TEST(test_a_guessed_bias),	    TEST(test_put_away),
		TEST(test_members_that_have_ended), TEST(test_another_file_in_its_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
