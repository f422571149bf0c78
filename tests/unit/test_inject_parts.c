/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The parts of injection that need no target: how a system call is restarted, ranges, what a
 * mapping list says.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "inject/c_library.h"
#include "inject/injected_library.h"
#include "inject/memory_map.h"
#include "inject/tracee.h"

static struct user_regs_struct in_call(long number, long result)
{
	return (struct user_regs_struct){.orig_rax = (unsigned long long)number,
					 .rax = (unsigned long long)result,
					 .rip = 0x1002};
}

static void test_restart(void **state)
{
	struct user_regs_struct r = in_call(SYS_read, -512);

	registers_restarted(&r);
	assert_int_equal(r.rip, 0x1000);
	assert_int_equal(r.rax, SYS_read);
	assert_int_equal((int64_t)r.orig_rax, -1);
	r = in_call(SYS_nanosleep, -516);
	registers_restarted(&r);
	assert_int_equal(r.rip, 0x1000);
	assert_int_equal(r.rax, SYS_restart_syscall);
	r = in_call(SYS_read, 17);
	registers_restarted(&r);
	assert_int_equal(r.rip, 0x1002);
	assert_int_equal(r.rax, 17);
}

/* In user code rax may hold anything, also what looks like a restart. */
static void test_no_restart_outside_calls(void **state)
{
	struct user_regs_struct r = in_call(-1, -512);

	registers_restarted(&r);
	assert_int_equal(r.rip, 0x1002);
	assert_int_equal((int64_t)r.rax, -512);
	r = in_call(-1, -EINTR);
	registers_undisturbed(&r);
	assert_int_equal((int64_t)r.rax, -EINTR);
}

static void test_interrupted_calls(void **state)
{
	struct user_regs_struct r = in_call(SYS_epoll_wait, -EINTR);

	registers_undisturbed(&r);
	assert_int_equal((int64_t)r.rax, -514);
	assert_int_equal(r.rip, 0x1002);
	registers_restarted(&r);
	assert_int_equal(r.rip, 0x1000);
	assert_int_equal(r.rax, SYS_epoll_wait);
	/* connect() begun again would fail: EINTR is its answer. */
	r = in_call(SYS_connect, -EINTR);
	registers_restarted(&r);
	assert_int_equal((int64_t)r.rax, -EINTR);
	assert_int_equal(r.rip, 0x1002);
}

static void test_ranges(void **state)
{
	const struct range ranges[] = {{10, 20}, {30, 31}, {50, 90}};

	for (uint64_t at = 0; at < 100; at++)
		assert_int_equal(ranges_hold(ranges, 3, at),
				 (at >= 10 && at < 20) || at == 30 || (at >= 50 && at < 90));
	assert_false(ranges_hold(ranges, 0, 15));
}

/* Ourselves: where our code, data and stack are, and what of libc may hold a lock. */
static void test_own_mappings(void **state)
{
	struct tracee memory = {.pid = getpid(), .mem_fd = -1};
	struct target_process *p = NULL;
	struct memory_map map = {0};
	struct c_library c = {0};
	struct reason why = {0};
	const struct mapping *m;
	int on_stack = 0;

	assert_int_equal(memory_map__read(getpid(), &map), 0);
	m = memory_map__find(&map, (uint64_t)(uintptr_t)&on_stack);
	assert_true(m && m->writable && m->private && !m->executable);
	m = memory_map__find(&map, (uint64_t)(uintptr_t)&test_own_mappings);
	assert_true(m && m->executable && !m->writable);
	assert_null(memory_map__find(&map, 0));
	assert_null(memory_map__find(&map, UINT64_MAX));
	assert_int_equal(target_process__new(getpid(), &why, &p), 0);
	assert_int_equal(c_library__read(p, &map, &memory, &why, &c), 0);
	assert_true(ranges_hold(c.unsafe.items, c.unsafe.nr, (uint64_t)(uintptr_t)fork));
	assert_false(ranges_hold(c.unsafe.items, c.unsafe.nr, (uint64_t)(uintptr_t)read));
	assert_false(
		ranges_hold(c.unsafe.items, c.unsafe.nr, (uint64_t)(uintptr_t)&test_own_mappings));
	assert_true(c.dlopen_at && c.dlsym_at && c.dlclose_at);
	c_library__done(&c);
	memory_map__done(&map);
	target_process__free(p);
}

static void test_lodger_name(void **state)
{
	char a[INJECTED_NAME_MAX], b[INJECTED_NAME_MAX];

	injected_library_name("a-name-that-is-far-too-long-for-a-mapping", "x", 1, a);
	injected_library_name("a-name-that-is-far-too-long-for-a-mapping", "y", 1, b);
	assert_int_equal(strlen(a), 24 + 1 + 16);
	assert_string_not_equal(a, b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_restart),
		cmocka_unit_test(test_no_restart_outside_calls),
		cmocka_unit_test(test_interrupted_calls),
		cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_own_mappings),
		cmocka_unit_test(test_lodger_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
