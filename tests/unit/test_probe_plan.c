/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Where probes are placed, on functions written byte by byte, on the stand-in library, and on
 * damaged cache files.
 */
#include "base/file.h"
#include "probe/plan/code.h"
#include "probe/plan/plan.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define ENDBR	   0xf3, 0x0f, 0x1e, 0xfa
#define PUSH_RBP   0x55
#define POP_RBP	   0x5d
#define RET	   0xc3
#define SUB_RSP_24 0x48, 0x83, 0xec, 0x18
#define ADD_RSP_24 0x48, 0x83, 0xc4, 0x18
/* xor %eax, %eax; test %eax, %eax */
#define CLEAR_EAX 0x31, 0xc0
#define TEST_EAX  0x85, 0xc0
/* mov %fs:0x28, %rax; sub %fs:0x28, %rax */
#define LOAD_CANARY 0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0
#define SUB_CANARY  0x64, 0x48, 0x2b, 0x04, 0x25, 0x28, 0, 0, 0
#define JNE(n)	    0x75, (n)
#define JE(n)	    0x74, (n)
#define JMP(n)	    0xeb, (n)
#define CALL_FAR    0xe8, 0x00, 0x10, 0, 0 /* far outside of the function */
#define JMP_FAR	    0xe9, 0x00, 0x20, 0, 0
#define JNE_FAR	    0x0f, 0x85, 0x00, 0x30, 0, 0
#define JMP_RAX	    0xff, 0xe0
#define NOTRACK_JMP 0x3e, 0xff, 0xe0

struct expected {
	int entry; /* offset */
	int sp_delta;
	bool entry_emulated;
	int exits[8]; /* offsets, ended by -1; first -2: refused */
};

static struct code_decoder *decoder;

static bool known_function(const void *arg, int64_t offset)
{
	return arg != NULL;
}

static void check_rule(const unsigned char *bytes, size_t nr, const struct expected *e,
		       const void *known, enum code_exit_rule rule)
{
	uint32_t exits[CODE_EXITS_MAX];
	struct code_insn entry;
	const char *why = "";
	struct code c;
	size_t exits_nr = 0;
	int err;

	assert_int_equal(code_entry(decoder, bytes, nr, &entry), 0);
	assert_int_equal(entry.offset, e->entry);
	assert_int_equal(entry.height, e->sp_delta);
	assert_int_equal(entry.emulated, e->entry_emulated);
	assert_int_equal(code__read(&c, decoder, bytes, nr), 0);
	c.is_function = known_function;
	c.arg = known;
	err = code_exits(&c, entry.offset, rule, exits, &exits_nr, &why);
	if (e->exits[0] == -2) {
		assert_int_equal(err, -EINVAL);
		assert_true(*why);
	} else {
		assert_int_equal(err, 0);
		for (size_t i = 0; i < exits_nr; i++)
			assert_int_equal(c.insns.items[exits[i]].offset, e->exits[i]);
		assert_int_equal(e->exits[exits_nr], -1);
	}
	code__done(&c);
}

static void check_with(const unsigned char *bytes, size_t nr, const struct expected *e,
		       const void *known)
{
	check_rule(bytes, nr, e, known, CODE_EXIT_ANY);
}

#define CHECK_RULE(rule, code, ...)                                                                \
	check_rule(code, sizeof(code), &(const struct expected)__VA_ARGS__, NULL, rule)
#define CHECK(code, ...) check_with(code, sizeof(code), &(const struct expected)__VA_ARGS__, NULL)

/* The common shape: push behind endbr64, and the canary's branch before the only ret. */
static void test_usual(void **state)
{
	static const unsigned char code[] = {
		ENDBR,	PUSH_RBP,   SUB_RSP_24, LOAD_CANARY, CALL_FAR, SUB_CANARY, /* 4, 5, 9.. */
		JNE(6), ADD_RSP_24, POP_RBP,	RET,	     CALL_FAR};

	CHECK(code, {4, 0, true, {32, -1}});
}

static void test_without_endbr(void **state)
{
	static const unsigned char code[] = {PUSH_RBP, CALL_FAR, POP_RBP, RET};

	/* Nothing cheap between the call and the ret. */
	CHECK(code, {0, 0, true, {7, -1}});
}

static void test_entry_below_arguments(void **state)
{
	/* sub $24, %rsp; then a call: at a known distance. */
	static const unsigned char below[] = {ENDBR, SUB_RSP_24, CALL_FAR, ADD_RSP_24, RET};
	/* mov %rsi, %rdi before the push: an argument is gone. */
	static const unsigned char clobbered[] = {ENDBR, 0x48, 0x89, 0xf7, PUSH_RBP, POP_RBP, RET};
	/* and $-32, %rsp before the push: the distance is not known. */
	static const unsigned char aligned[] = {0x48, 0x83, 0xe4, 0xe0, PUSH_RBP, POP_RBP, RET};

	CHECK(below, {8, 24, true, {17, -1}});
	CHECK(clobbered, {0, 0, false, {9, -1}});
	CHECK(aligned, {0, 0, false, {6, -1}});
}

static void test_exit_rules(void **state)
{
	static const unsigned char canary[] = {ENDBR,	 PUSH_RBP,   SUB_RSP_24, LOAD_CANARY,
					       CALL_FAR, SUB_CANARY, JNE(6),	 ADD_RSP_24,
					       POP_RBP,	 RET,	     CALL_FAR};
	/* push; call; pop; jmp to another function. */
	static const unsigned char tail[] = {PUSH_RBP, CALL_FAR, POP_RBP, JMP_FAR};

	CHECK_RULE(CODE_EXIT_RETURN, canary, {4, 0, true, {32, -1}});
	CHECK_RULE(CODE_EXIT_RESULT, canary, {4, 0, true, {39, -1}});
	CHECK_RULE(CODE_EXIT_ANY, tail, {0, 0, true, {7, -1}});
	CHECK_RULE(CODE_EXIT_RETURN, tail, {0, 0, true, {-2}});
	CHECK_RULE(CODE_EXIT_RESULT, tail, {0, 0, true, {-2}});
}

static void test_several_returns(void **state)
{
	/* push; test; je L; call; pop; ret; L: pop; ret */
	static const unsigned char both[] = {PUSH_RBP, TEST_EAX, JE(7),	  CALL_FAR,
					     POP_RBP,  RET,	 POP_RBP, RET};
	/* Two ways into one return, each by a jump of its own. */
	static const unsigned char joined[] = {PUSH_RBP, TEST_EAX, JE(7),  CALL_FAR, JMP(8),
					       CALL_FAR, 0x90,	   JMP(0), POP_RBP,  RET};

	/* Neither ret can take the je: it leads to the other, too. */
	CHECK(both, {0, 0, true, {11, 13, -1}});
	CHECK(joined, {0, 0, true, {10, 18, -1}});
}

static void test_tail_calls(void **state)
{
	static const unsigned char direct[] = {PUSH_RBP, TEST_EAX, JE(2),  POP_RBP,
					       RET,	 POP_RBP,  JMP_FAR};
	static const unsigned char indirect[] = {PUSH_RBP, CALL_FAR, POP_RBP, JMP_RAX};
	/* The same jump with the frame still there goes to the cold part, and is no exit. */
	static const unsigned char cold[] = {PUSH_RBP, TEST_EAX, JE(5), JMP_FAR, POP_RBP, RET};
	static const unsigned char cold_branch[] = {PUSH_RBP, TEST_EAX, JNE_FAR,
						    CALL_FAR, POP_RBP,	RET};
	/* What comes after that branch may be reached twice, by way of the cold part. */
	static const unsigned char cold_last[] = {PUSH_RBP, TEST_EAX, JNE_FAR, POP_RBP, RET};
	static const unsigned char conditional[] = {TEST_EAX, JNE_FAR, RET};
	static const struct expected refused = {2, 0, true, {-2}};

	CHECK(direct, {0, 0, true, {6, 8, -1}});
	CHECK(indirect, {0, 0, true, {7, -1}});
	CHECK(cold, {0, 0, true, {3, -1}});
	CHECK(cold_branch, {0, 0, true, {15, -1}});
	CHECK(cold_last, {0, 0, true, {10, -1}});
	check_with(conditional, sizeof(conditional), &refused, conditional);
	CHECK(conditional, {2, 0, true, {8, -1}});
}

/* With a table somewhere, only the canary's branch is known to lead where it seems to. */
static void test_tables(void **state)
{
	static const unsigned char plain[] = {PUSH_RBP, TEST_EAX, JE(3), NOTRACK_JMP,
					      JMP(0),	POP_RBP,  RET};
	static const unsigned char canary[] = {PUSH_RBP, TEST_EAX, JE(3), NOTRACK_JMP, SUB_CANARY,
					       JNE(2),	 POP_RBP,  RET,	  CALL_FAR};

	CHECK(plain, {0, 0, true, {11, -1}});
	CHECK(canary, {0, 0, true, {17, -1}});
}

static void test_no_return(void **state)
{
	static const unsigned char stops[] = {PUSH_RBP, CALL_FAR, 0x0f, 0x0b};
	static const unsigned char loops[] = {PUSH_RBP, JMP(-2)};

	CHECK(stops, {0, 0, true, {-2}});
	CHECK(loops, {0, 0, true, {-2}});
}

static void test_hostile(void **state)
{
	static const unsigned char cut[] = {PUSH_RBP, 0xe8, 0x00};
	static const unsigned char nonsense[] = {0x06, 0x06, 0x06};
	/* Branches into the middle of instructions, before the start and past the end. */
	static const unsigned char wild[] = {PUSH_RBP, JE(1),	CALL_FAR, JE(-100),
					     JE(100),  POP_RBP, RET};
	unsigned char *noise = malloc(CODE_FUNCTION_BYTES_MAX + 1);
	uint32_t exits[CODE_EXITS_MAX], seed = 1;
	struct code_insn entry;
	struct code c;
	size_t nr = 0;
	const char *why;

	assert_int_equal(code__read(&c, decoder, cut, sizeof(cut)), -EINVAL);
	code__done(&c);
	assert_int_equal(code__read(&c, decoder, nonsense, sizeof(nonsense)), -EINVAL);
	code__done(&c);
	assert_int_equal(code__read(&c, decoder, cut, 0), -EINVAL);
	code__done(&c);
	assert_int_equal(code_entry(decoder, cut, 0, &entry), -EINVAL);
	assert_int_equal(code_entry(decoder, nonsense, sizeof(nonsense), &entry), -EINVAL);
	CHECK(wild, {0, 0, true, {13, -1}});
	assert_non_null(noise);
	memset(noise, 0x90, CODE_FUNCTION_BYTES_MAX + 1);
	assert_int_equal(code__read(&c, decoder, noise, CODE_FUNCTION_BYTES_MAX + 1), -EINVAL);
	code__done(&c);
	for (int round = 0; round < 2000; round++) {
		for (size_t i = 0; i < 64; i++) {
			seed = seed * 1664525 + 1013904223;
			noise[i] = (unsigned char)(seed >> 24);
		}
		if (!code__read(&c, decoder, noise, 64))
			(void)code_exits(&c, 0, CODE_EXIT_ANY, exits, &nr, &why);
		code__done(&c);
		(void)code_entry(decoder, noise, 64, &entry);
	}
	free(noise);
}

static char library[4096];

static struct probe_plan *plan_library(const char *cache_dir)
{
	struct probe_plan *plan = NULL;
	struct reason why = {""};

	if (probe_plan__new(library, cache_dir, &why, &plan))
		fail_msg("%s", why.text);
	return plan;
}

static const struct probe_function *function_of(const struct probe_plan *plan, const char *symbol)
{
	for (size_t i = 0; i < plan->functions.nr; i++)
		if (!strcmp(plan->functions.items[i].symbol, symbol))
			return &plan->functions.items[i];
	fail_msg("%s is not in the plan", symbol);
	return NULL;
}

static void check_library(const struct probe_plan *plan)
{
	const struct probe_function *add = function_of(plan, "_ZN2at4_ops11add__Tensor4callEi");
	size_t kinds[PROBE_NVTX_TOOL_POP + 1] = {0}, entries = 0, exits = 0;

	assert_string_equal(add->name, "aten::add_");
	assert_string_equal(add->overload, "Tensor");
	assert_int_equal(function_of(plan, "_ZN3c1025ProfiledCPUMemoryReporter3NewEPvm")->kind,
			 PROBE_ALLOC);
	for (size_t i = 0; i < plan->functions.nr; i++) {
		assert_true(plan->functions.items[i].placed);
		assert_string_equal(plan->functions.items[i].why, "");
		kinds[plan->functions.items[i].kind]++;
	}
	for (size_t i = 0; i < plan->sites.nr; i++) {
		entries += !plan->sites.items[i].is_exit;
		exits += plan->sites.items[i].is_exit;
	}
	assert_int_equal(kinds[PROBE_OP], 7);
	/* call_boxed(); call_often() and call_script(); begin_range(). */
	assert_int_equal(kinds[PROBE_DISPATCH], 1);
	assert_int_equal(kinds[PROBE_UNSEEN], 2);
	assert_int_equal(kinds[PROBE_RANGE], 1);
	/* And the node, New and Delete. */
	assert_int_equal(entries, 7 + 1 + 2 + 1 + 3);
	assert_int_equal(exits, 7 + 1 + 1);
	assert_int_equal(plan->nodes.nr, 2);
	assert_int_equal(plan->not_placed_nr, 0);
}

static void test_library(void **state)
{
	struct probe_plan *plan = plan_library(NULL);

	check_library(plan);
	probe_plan__free(plan);
}

/* The one plan in the folder. */
static void find_plan(const char *dir, char *ret_path, size_t bytes)
{
	char pattern[256];
	glob_t found;

	(void)snprintf(pattern, sizeof(pattern), "%s/*.plan", dir);
	assert_int_equal(glob(pattern, 0, NULL, &found), 0);
	assert_int_equal(found.gl_pathc, 1);
	(void)snprintf(ret_path, bytes, "%s", found.gl_pathv[0]);
	globfree(&found);
}

/* Takes away the folder, which holds nothing else. */
static void remove_cache(const char *dir)
{
	static const char *const patterns[] = {"%s/*.plan", "%s/searched-*"};
	char pattern[256];
	glob_t found;

	for (size_t i = 0; i < 2; i++) {
		(void)snprintf(pattern, sizeof(pattern), patterns[i], dir);
		if (glob(pattern, 0, NULL, &found))
			continue;
		for (size_t k = 0; k < found.gl_pathc; k++)
			assert_int_equal(unlink(found.gl_pathv[k]), 0);
		globfree(&found);
	}
	assert_int_equal(rmdir(dir), 0);
}

/* Every byte of a cache file matters or is never read: damaged at any place the plan is the same.
 */
static void test_cache(void **state)
{
	char dir[] = "/tmp/gpuprof-plan-XXXXXX", path[256];
	struct probe_plan *plan;
	char *file;
	size_t nr;

	assert_non_null(mkdtemp(dir));
	probe_plan__free(plan_library(dir));
	find_plan(dir, path, sizeof(path));
	assert_int_equal(file_read(path, 1 << 20, &file, &nr), 0);
	for (size_t i = 0; i < nr + 1; i += i < 64 ? 1 : 97) {
		int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);

		assert_true(fd >= 0);
		file[i] = (char)(file[i] ^ (i < nr ? 0x10 : 0));
		/* Every other time cut short there, too. */
		assert_int_equal(file_write_all(fd, file, i % 2 ? nr : i), 0);
		file[i] = (char)(file[i] ^ (i < nr ? 0x10 : 0));
		(void)close(fd);
		plan = plan_library(dir);
		check_library(plan);
		probe_plan__free(plan);
	}
	free(file);
	plan = plan_library(dir);
	check_library(plan);
	probe_plan__free(plan);
	remove_cache(dir);
}

/* A copy that has none, in a folder. */
static void copy_without_build_id(const char *from, const char *folder, char *ret_path,
				  size_t bytes)
{
	static const char note[] = {3, 0, 0, 0, 'G', 'N', 'U', 0}; /* NT_GNU_BUILD_ID */
	char *file, *at;
	size_t nr;
	int fd;

	(void)snprintf(ret_path, bytes, "%s/copy.so", folder);
	assert_int_equal(file_read(from, 1 << 24, &file, &nr), 0);
	at = memmem(file, nr, note, sizeof(note));
	assert_non_null(at);
	at[0] = 99;
	fd = open(ret_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(file_write_all(fd, file, nr), 0);
	(void)close(fd);
	free(file);
}

/* As NVIDIA's are. What is found by name, and what is found by looking through all code. */
static void check_without_build_id(const char *from)
{
	char dir[] = "/tmp/gpuprof-plan-XXXXXX", copy[64], path[256];
	struct probe_plan *plan, *again;
	struct reason why = {""};

	assert_non_null(mkdtemp(dir));
	copy_without_build_id(from, dir, copy, sizeof(copy));
	assert_int_equal(probe_plan__new(copy, dir, &why, &plan), 0);
	assert_true(plan->functions.nr > 0);
	find_plan(dir, path, sizeof(path));
	assert_int_equal(probe_plan__new(copy, dir, &why, &again), 0);
	assert_int_equal(again->functions.nr, plan->functions.nr);
	assert_int_equal(again->sites.nr, plan->sites.nr);
	probe_plan__free(plan);
	probe_plan__free(again);
	assert_int_equal(unlink(copy), 0);
	remove_cache(dir);
}

static void test_cache_without_build_id(void **state)
{
	check_without_build_id("/lib64/ld-linux-x86-64.so.2");
	check_without_build_id(library);
}

static void test_no_library(void **state)
{
	struct probe_plan *plan;
	struct reason why = {""};

	assert_int_equal(probe_plan__new("/nonexistent", NULL, &why, &plan), -ENOENT);
	assert_non_null(strstr(why.text, "/nonexistent"));
	assert_true(probe_plan__new("/dev/null", NULL, &why, &plan) < 0);
}

/* build/tests/test_probe_plan -> build/fake/debian/libfakeops.so */
static int set_up(void **state)
{
	static const char name[] = "/fake/debian/libfakeops.so";
	ssize_t n = readlink("/proc/self/exe", library, sizeof(library) - sizeof(name));
	char *slash = library;

	if (n < 0)
		return -1;
	library[n] = '\0';
	for (int i = 0; i < 2; i++) {
		slash = strrchr(library, '/');
		if (!slash)
			return -1;
		*slash = '\0';
	}
	memcpy(slash, name, sizeof(name));
	decoder = code_decoder__new();
	return decoder ? access(library, R_OK) : -1;
}

static int tear_down(void **state)
{
	code_decoder__free(decoder);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_usual),
		cmocka_unit_test(test_without_endbr),
		cmocka_unit_test(test_entry_below_arguments),
		cmocka_unit_test(test_exit_rules),
		cmocka_unit_test(test_several_returns),
		cmocka_unit_test(test_tail_calls),
		cmocka_unit_test(test_tables),
		cmocka_unit_test(test_no_return),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_library),
		cmocka_unit_test(test_cache),
		cmocka_unit_test(test_cache_without_build_id),
		cmocka_unit_test(test_no_library),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
