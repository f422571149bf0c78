/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Names of kernels by the addresses of their host functions: here of functions of this program.
 */
#include "capture/symbols/kernels.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "capture/process/process_table.h"
#include "common/clock.h"
#include "unit/failing_open.h"

#define LIMIT_NS (60 * SECOND_NS)

void gp_test_kernel(void);
void gp_test_other(void);

__attribute__((noinline)) void gp_test_kernel(void)
{
	__asm__ volatile("nop");
}

__attribute__((noinline)) void gp_test_other(void)
{
	__asm__ volatile("nop; nop");
}

static uint64_t address_of(void (*function)(void))
{
	return (uint64_t)(uintptr_t)function;
}

static struct target_process *self(void)
{
	struct target_process *p;
	struct reason why;

	assert_int_equal(target_process__new(getpid(), &why, &p), 0);
	return p;
}

static void test_names(void **state)
{
	struct target_process *p = self();
	struct kernels k = {0};

	assert_string_equal(kernels__name(&k, p, address_of(gp_test_kernel)), "gp_test_kernel");
	assert_string_equal(kernels__name(&k, p, address_of(gp_test_other)), "gp_test_other");
	/* Within a function, and nowhere. */
	assert_null(kernels__name(&k, p, address_of(gp_test_kernel) + 1));
	assert_null(kernels__name(&k, p, 8));
	assert_int_equal(k.nameless_nr, 0);
	kernels__done(&k);
	target_process__free(p);
}

static void test_a_file_that_cannot_be_read_now(void **state)
{
	struct target_process *p = self();
	uint64_t until_ns = clock_now_ns() + LIMIT_NS;
	const char *name = NULL;
	struct kernels k = {0};

	open_fails_of = "test_capture_kernels";
	open_fails_with = EMFILE;
	assert_null(kernels__name(&k, p, address_of(gp_test_kernel)));
	assert_int_equal(k.nameless_nr, 1);
	open_fails_of = NULL;
	while (!name && clock_now_ns() < until_ns) {
		name = kernels__name(&k, p, address_of(gp_test_kernel));
		(void)usleep(10000);
	}
	assert_non_null(name);
	assert_string_equal(name, "gp_test_kernel");
	kernels__done(&k);
	target_process__free(p);
}

/* Its names stay, and it is read again for others. */
static void test_a_file_that_is_put_away(void **state)
{
	struct process_table *nobody = calloc(1, sizeof(*nobody));
	struct file_users users = process_table__file_users(nobody);
	struct target_process *p = self();
	struct kernels k = {0};
	const char *name;

	assert_non_null(nobody);
	name = kernels__name(&k, p, address_of(gp_test_kernel));
	assert_non_null(name);
	for (int i = 0; i < 2; i++)
		kernels__poll(&k, &users);
	assert_int_equal(k.files.nr, 1);
	kernels__poll(&k, &users);
	assert_int_equal(k.files.nr, 0);
	assert_string_equal(name, "gp_test_kernel");
	assert_ptr_equal(kernels__name(&k, p, address_of(gp_test_kernel)), name);
	assert_string_equal(kernels__name(&k, p, address_of(gp_test_other)), "gp_test_other");
	kernels__done(&k);
	target_process__free(p);
	process_table__done(nobody);
	free(nobody);
}

/* Of those for which there is no room. */
static void test_a_name_without_room_is_counted(void **state)
{
	struct target_process *p = self();
	struct kernels k = {0};

	for (uint64_t i = 0; i < 65536; i++)
		assert_null(kernels__name(&k, p, 1 + i));
	assert_int_equal(k.nameless_nr, 0);
	assert_null(kernels__name(&k, p, address_of(gp_test_kernel)));
	assert_int_equal(k.nameless_nr, 1);
	kernels__done(&k);
	target_process__free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_a_file_that_cannot_be_read_now),
		cmocka_unit_test(test_a_file_that_is_put_away),
		cmocka_unit_test(test_a_name_without_room_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
