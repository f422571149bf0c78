/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Lines of this very program, whose inlined functions know where they are; functions of the kernel
 * by a text as the kernel writes it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <link.h>

#include "inspect/elf/line_reader.h"
#include "inspect/elf/symbols.h"
#include "inspect/kernel/kallsyms.h"

/* ---- lines ---- */

#define INLINED static inline __attribute__((always_inline))

static uintptr_t here;
static uint32_t innermost_line, middle_line, outer_line;

INLINED void innermost(void)
{
	/* clang-format off */
	innermost_line = __LINE__; __asm__ volatile("lea (%%rip), %0" : "=r"(here));
	/* clang-format on */
}

INLINED void middle(void)
{
	/* clang-format off */
	middle_line = __LINE__; innermost();
	/* clang-format on */
}

static __attribute__((noinline)) void outer(void)
{
	/* clang-format off */
	outer_line = __LINE__; middle();
	/* clang-format on */
}

static int first_base(struct dl_phdr_info *info, size_t bytes, void *arg)
{
	*(uintptr_t *)arg = info->dlpi_addr;
	return 1;
}

static void check_place(const struct line_place *place, const char *function, uint32_t line)
{
	assert_string_equal(place->function, function);
	assert_int_equal(place->line, line);
	assert_non_null(strstr(place->file, "test_inspect_lines.c"));
}

static int check_own(size_t i, const struct line_place *places, size_t nr, void *arg)
{
	assert_int_equal(i, 1);
	assert_int_equal(nr, 3);
	check_place(&places[0], "innermost", innermost_line);
	check_place(&places[1], "middle", middle_line);
	check_place(&places[2], "outer", outer_line);
	++*(int *)arg;
	return 0;
}

static void test_own_lines(void **state)
{
	uint64_t addresses[3] = {0, 0, UINT64_MAX};
	struct symbols *symbols;
	struct elf_file *f;
	uintptr_t base = 0;
	size_t asked;
	int known = 0;

	outer();
	(void)dl_iterate_phdr(first_base, &base);
	addresses[1] = here - base - 1;
	assert_int_equal(elf_file__open("/proc/self/exe", NULL, &f), 0);
	assert_int_equal(symbols__new(f, NULL, &symbols), 0);
	assert_ptr_equal(symbols__lines_file(symbols), f);
	assert_int_equal(line_reader_ask(f, addresses, 3, 1000000000, check_own, &known, &asked),
			 0);
	assert_int_equal(known, 1);
	assert_int_equal(asked, 3);
	assert_string_equal(symbols__name(symbols, here - base), "outer");
	/* The first address is looked up in any case. */
	assert_int_equal(line_reader_ask(f, addresses, 3, 0, check_own, &known, &asked), 0);
	assert_int_equal(asked, 1);
	symbols__free(symbols);
}

static void test_no_lines(void **state)
{
	struct elf_file *f;
	size_t asked;

	assert_int_equal(elf_file__open("/bin/true", NULL, &f), 0);
	assert_false(line_reader_can(f));
	assert_int_equal(line_reader_ask(f, (uint64_t[]){4096}, 1, 0, check_own, NULL, &asked), 0);
	assert_int_equal(asked, 0);
	elf_file__free(f);
}

static int count(size_t i, const struct line_place *places, size_t nr, void *arg)
{
	*(size_t *)arg += nr + strlen(places[0].function);
	return 0;
}

/* What a child that has gone wrong may answer. */
static void test_bad_answers(void **state)
{
	static const uint32_t good[] = {1, 7, 4, 0, 0x616161};
	uint32_t bad[5];
	size_t sum = 0, asked;

	assert_int_equal(line_reader_parse((const void *)good, 20, 1, count, &sum, &asked), 0);
	assert_int_equal(asked, 1);
	assert_int_equal(sum, 4);
	for (size_t bytes = 1; bytes < 20; bytes++)
		assert_int_equal(
			line_reader_parse((const void *)good, bytes, 1, count, &sum, &asked),
			-EBADMSG);
	for (size_t i = 0; i < 5; i++) {
		memcpy(bad, good, sizeof(bad));
		bad[i] = i == 1 ? 7 : INT32_MAX;
		assert_int_equal(line_reader_parse((const void *)bad, 20, 1, count, &sum, &asked),
				 i == 1 ? 0 : -EBADMSG);
	}
}

/* ---- the kernel ---- */

static const char *name_of(const struct kallsyms *k, uint64_t address, const char *module)
{
	struct kernel_function f;

	if (kallsyms__find(k, address, &f))
		return NULL;
	if (module)
		assert_string_equal(f.module, module);
	else
		assert_null(f.module);
	return f.name;
}

static struct kallsyms *parse(const char *text)
{
	struct kallsyms *k;

	assert_int_equal(kallsyms__parse(strdup(text), &k), 0);
	return k;
}

static void test_kernel(void **state)
{
	struct kallsyms *k = parse("0000000000000000 A fixed_percpu_data\n"
				   "ffffffff81000400 T __x64_sys_read\n"
				   "ffffffff81000100 t do_read\n"
				   "ffffffff81000400 T sys_read\n"
				   "ffffffff81000200 D some_data\n"
				   "ffffffffc0000000 t nft_do_chain\t[nf_tables]\n"
				   "nonsense\n\nffffffff81000500\nffffffff81000500 T\n"
				   "ffffffff81000500 T \n");

	assert_int_equal(kallsyms__nr(k), 4);
	assert_null(name_of(k, 0xffffffff810000ff, NULL));
	assert_string_equal(name_of(k, 0xffffffff81000100, NULL), "do_read");
	assert_string_equal(name_of(k, 0xffffffff810003ff, NULL), "do_read");
	assert_string_equal(name_of(k, 0xffffffff81000400, NULL), "sys_read");
	assert_string_equal(name_of(k, 0xffffffff810fffff, NULL), "sys_read");
	/* No function is that long. */
	assert_null(name_of(k, 0xffffffff8fffffff, NULL));
	assert_string_equal(name_of(k, 0xffffffffc0000010, "[nf_tables]"), "nft_do_chain");
	kallsyms__free(k);
}

static void test_hidden_kernel(void **state)
{
	struct kallsyms *k = parse("0000000000000000 T do_read\n0000000000000000 T sys_read\n");

	assert_int_equal(kallsyms__nr(k), 0);
	assert_null(name_of(k, 0, NULL));
	assert_null(name_of(k, 0xffffffff81000100, NULL));
	kallsyms__free(k);
}

static void test_kernel_addresses(void **state)
{
	static const char *const names[] = {"no_such_function", "schedule"};
	uint64_t at[2] = {1, 1};
	struct kallsyms *k;

	assert_int_equal(kallsyms__read(&k), 0);
	assert_int_equal(kallsyms__addresses(names, 2, at), 0);
	assert_int_equal(at[0], 0);
	/* Or they are hidden from us. */
	if (kallsyms__nr(k))
		assert_string_equal(name_of(k, at[1], NULL), "schedule");
	else
		assert_int_equal(at[1], 0);
	kallsyms__free(k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kernel_addresses), cmocka_unit_test(test_own_lines),
		cmocka_unit_test(test_no_lines),	 cmocka_unit_test(test_bad_answers),
		cmocka_unit_test(test_kernel),		 cmocka_unit_test(test_hidden_kernel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
