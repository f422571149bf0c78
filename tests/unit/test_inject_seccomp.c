/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * System call filters are judged right: what is known decides, what is not known counts as the
 * worst that can come, and malformed programs count as deadly.
 */
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "inject/seccomp.h"

#define NR(code)       (sizeof(code) / sizeof((code)[0]))
#define LOAD_NUMBER    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))
#define LOAD_ARCH      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch))
#define LOAD_ARGUMENT  BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0]))
#define EQUAL(k, t, f) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (k), (t), (f))
#define RETURN(k)      BPF_STMT(BPF_RET | BPF_K, (k))

static void test_number_decides(void **state)
{
	const struct sock_filter code[] = {
		LOAD_ARCH,
		EQUAL(AUDIT_ARCH_X86_64, 1, 0),
		RETURN(SECCOMP_RET_KILL_PROCESS),
		LOAD_NUMBER,
		EQUAL(SYS_mmap, 2, 0),
		EQUAL(SYS_ptrace, 0, 1),
		RETURN(SECCOMP_RET_KILL_THREAD),
		RETURN(SECCOMP_RET_ALLOW),
	};

	assert_int_equal(seccomp_worst_action(code, NR(code), SYS_mmap), SECCOMP_RET_ALLOW);
	assert_int_equal(seccomp_worst_action(code, NR(code), SYS_ptrace), SECCOMP_RET_KILL_THREAD);
	assert_int_equal(seccomp_worst_action(code, NR(code), SYS_read), SECCOMP_RET_ALLOW);
}

static void test_unknown_goes_both_ways(void **state)
{
	const struct sock_filter code[] = {
		LOAD_ARGUMENT,
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0x10000),
		EQUAL(0, 1, 0),
		RETURN(SECCOMP_RET_ERRNO | 38),
		RETURN(SECCOMP_RET_ALLOW),
	};

	assert_int_equal(seccomp_worst_action(code, NR(code), SYS_clone), SECCOMP_RET_ERRNO);
}

/* Kill-process is a negative number to the kernel and worse than kill-thread, which is zero. */
static void test_worst_of_all(void **state)
{
	const struct sock_filter code[] = {
		LOAD_ARGUMENT,
		EQUAL(1, 0, 1),
		RETURN(SECCOMP_RET_KILL_PROCESS),
		RETURN(SECCOMP_RET_KILL_THREAD),
	};

	assert_int_equal(seccomp_worst_action(code, NR(code), 0), SECCOMP_RET_KILL_PROCESS);
}

static void test_memory_and_index(void **state)
{
	const struct sock_filter code[] = {
		LOAD_NUMBER,
		BPF_STMT(BPF_ST, 3),
		BPF_STMT(BPF_LDX | BPF_IMM, 5),
		BPF_STMT(BPF_LD | BPF_MEM, 3),
		BPF_STMT(BPF_ALU | BPF_ADD | BPF_X, 0),
		EQUAL(SYS_close + 5, 0, 1),
		RETURN(SECCOMP_RET_ALLOW),
		RETURN(SECCOMP_RET_TRAP),
	};

	assert_int_equal(seccomp_worst_action(code, NR(code), SYS_close), SECCOMP_RET_ALLOW);
	assert_int_equal(seccomp_worst_action(code, NR(code), SYS_open), SECCOMP_RET_TRAP);
}

static void test_malformed_is_deadly(void **state)
{
	const struct sock_filter beyond[] = {LOAD_NUMBER, BPF_STMT(BPF_JMP | BPF_JA, 0xffffffff)};
	const struct sock_filter endless[] = {LOAD_NUMBER};
	const struct sock_filter slot[] = {BPF_STMT(BPF_LD | BPF_MEM, 0x7fffffff),
					   BPF_STMT(BPF_RET | BPF_A, 0)};

	assert_int_equal(seccomp_worst_action(beyond, NR(beyond), 0), SECCOMP_RET_KILL_PROCESS);
	assert_int_equal(seccomp_worst_action(endless, NR(endless), 0), SECCOMP_RET_KILL_PROCESS);
	assert_int_equal(seccomp_worst_action(endless, 0, 0), SECCOMP_RET_KILL_PROCESS);
	assert_int_equal(seccomp_worst_action(slot, NR(slot), 0), SECCOMP_RET_KILL_PROCESS);
}

/* Each argument test doubles the ways: it ends, and says no. */
static void test_too_many_ways(void **state)
{
	struct sock_filter code[4000];

	for (size_t i = 0; i + 1 < NR(code); i += 2) {
		code[i] = (struct sock_filter)LOAD_ARGUMENT;
		code[i + 1] = (struct sock_filter)EQUAL((uint32_t)i, 2, 0);
	}
	assert_int_equal(seccomp_worst_action(code, NR(code), 0), SECCOMP_RET_KILL_PROCESS);
}

/* Any bytes: no crash, no hang. */
static void test_random_programs(void **state)
{
	struct sock_filter code[64];

	srand(7);
	for (int round = 0; round < 2000; round++) {
		unsigned char *bytes = (unsigned char *)code;

		for (size_t i = 0; i < sizeof(code); i++)
			bytes[i] = (unsigned char)(rand() >> 3);
		(void)seccomp_worst_action(code, NR(code), SYS_mmap);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_number_decides),
		cmocka_unit_test(test_unknown_goes_both_ways),
		cmocka_unit_test(test_worst_of_all),
		cmocka_unit_test(test_memory_and_index),
		cmocka_unit_test(test_malformed_is_deadly),
		cmocka_unit_test(test_too_many_ways),
		cmocka_unit_test(test_random_programs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
