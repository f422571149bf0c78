/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Unwind tables of real files against what libdw says of each of their rows, and the cache on disk.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "inspect/elf/elf.h"
#include "inspect/elf/vdso.h"
#include "inspect/unwind/unwind_cache.h"
#include "inspect/unwind/unwind_table.h"
#include "wire.h"

#define LIBC   "/lib/x86_64-linux-gnu/libc.so.6"
#define LOADER "/lib64/ld-linux-x86-64.so.2"
#define TORCH  "/usr/lib/python3/dist-packages/torch/lib/libtorch_cpu.so"

/* ---- what libdw says, as a rule ---- */

static bool is_op(const Dwarf_Op *op, uint8_t atom, uint64_t number)
{
	return op->atom == atom && op->number == number;
}

static uint64_t rule(enum gp_unwind_cfa cfa, enum gp_unwind_bp bp_kind, int64_t offset, int64_t bp)
{
	return GP_UNWIND_RULE(cfa, bp_kind, offset, bp);
}

/* The caller's rbp. libdw: no operations and no pointer for "the same", no operations for
 * "undefined". */
static enum gp_unwind_bp expected_bp(Dwarf_Frame *frame, int64_t *ret_offset)
{
	Dwarf_Op memory[3], *ops;
	size_t nr;

	*ret_offset = 0;
	assert_int_equal(dwarf_frame_register(frame, 6, memory, &ops, &nr), 0);
	if (!nr)
		return ops ? GP_UNWIND_BP_LOST : GP_UNWIND_BP_SAME;
	if (is_op(&ops[0], DW_OP_call_frame_cfa, 0) && nr <= 2 &&
	    (nr == 1 || ops[1].atom == DW_OP_plus_uconst)) {
		*ret_offset = nr == 1 ? 0 : (int64_t)ops[1].number;
		return GP_UNWIND_BP_CFA;
	}
	/* An expression is run with the CFA on the stack. */
	if (nr == 2 && is_op(&ops[0], DW_OP_call_frame_cfa, 0) &&
	    (ops[1].atom == DW_OP_breg6 || ops[1].atom == DW_OP_breg7)) {
		*ret_offset = (int64_t)ops[1].number;
		return ops[1].atom == DW_OP_breg6 ? GP_UNWIND_BP_BP : GP_UNWIND_BP_SP;
	}
	return GP_UNWIND_BP_LOST;
}

static bool is_plt(const Dwarf_Op *ops, size_t nr)
{
	static const uint8_t rest[] = {DW_OP_and,  DW_OP_lit0, DW_OP_ge,
				       DW_OP_lit3, DW_OP_shl,  DW_OP_plus};

	if (nr != 9 || ops[0].atom != DW_OP_breg7 || !is_op(&ops[1], DW_OP_breg16, 0) ||
	    ops[2].atom != DW_OP_lit15)
		return false;
	for (size_t i = 0; i < sizeof(rest); i++)
		if (i != 1 && ops[3 + i].atom != rest[i])
			return false;
	return ops[4].atom >= DW_OP_lit0 && ops[4].atom <= DW_OP_lit15;
}

static uint64_t expected_signal(const Dwarf_Op *cfa, size_t nr, enum gp_unwind_bp bp_kind,
				int64_t bp)
{
	if (nr == 2 && cfa[0].atom == DW_OP_breg7 && cfa[1].atom == DW_OP_deref)
		return rule(GP_UNWIND_SIGNAL, bp_kind, (int64_t)cfa[0].number, bp);
	return GP_UNWIND_HARD;
}

static uint64_t expected_cfa(const Dwarf_Op *cfa, size_t nr, enum gp_unwind_bp bp_kind, int64_t bp)
{
	if (nr == 1 && is_op(&cfa[0], DW_OP_bregx, 7))
		return rule(GP_UNWIND_SP, bp_kind, (int64_t)cfa[0].number2, bp);
	if (nr == 1 && is_op(&cfa[0], DW_OP_bregx, 6))
		return rule(GP_UNWIND_BP, bp_kind, (int64_t)cfa[0].number2, bp);
	if (nr == 2 && cfa[0].atom == DW_OP_breg6 && cfa[1].atom == DW_OP_deref)
		return rule(GP_UNWIND_BP_AT, bp_kind, (int64_t)cfa[0].number, bp);
	if (is_plt(cfa, nr) && bp_kind == GP_UNWIND_BP_SAME)
		return rule(GP_UNWIND_PLT, bp_kind, (int64_t)cfa[0].number,
			    cfa[4].atom - DW_OP_lit0);
	return GP_UNWIND_HARD;
}

static uint64_t expected_rule(Dwarf_CFI *cfi, uint64_t address)
{
	CLEANUP(cleanup_free) Dwarf_Frame *frame = NULL;
	Dwarf_Op memory[3], *ra, *cfa;
	size_t ra_nr, cfa_nr;
	bool is_signal;
	enum gp_unwind_bp bp_kind;
	int64_t bp;
	int ra_register;

	if (dwarf_cfi_addrframe(cfi, address, &frame))
		return GP_UNWIND_NONE;
	ra_register = dwarf_frame_info(frame, NULL, NULL, &is_signal);
	assert_int_equal(ra_register, 16);
	assert_int_equal(dwarf_frame_register(frame, 16, memory, &ra, &ra_nr), 0);
	if (!ra_nr && ra)
		return GP_UNWIND_END;
	bp_kind = expected_bp(frame, &bp);
	assert_int_equal(dwarf_frame_cfa(frame, &cfa, &cfa_nr), 0);
	if (is_signal)
		return expected_signal(cfa, cfa_nr, bp_kind, bp);
	if (dwarf_frame_register(frame, 16, memory, &ra, &ra_nr) || ra_nr != 2 ||
	    !is_op(&ra[0], DW_OP_call_frame_cfa, 0) ||
	    !is_op(&ra[1], DW_OP_plus_uconst, (uint64_t)-8))
		return GP_UNWIND_HARD;
	return expected_cfa(cfa, cfa_nr, bp_kind, bp);
}

/* ---- rows ---- */

static void compare_row(const struct unwind_table *t, Dwarf_CFI *cfi, uint32_t row)
{
	uint64_t first = t->words[row] >> 32;
	uint64_t last = row + 1 < t->rows_nr ? (t->words[row + 1] >> 32) - 1 : first;
	uint64_t got = t->words[t->rows_nr + (uint32_t)t->words[row]];

	assert_int_equal(unwind_table__rule(t, first), got);
	assert_int_equal(unwind_table__rule(t, last), got);
	if (got != expected_rule(cfi, first) || got != expected_rule(cfi, last))
		fail_msg("%#llx to %#llx: %#llx, not %#llx or %#llx", (unsigned long long)first,
			 (unsigned long long)last, (unsigned long long)got,
			 (unsigned long long)expected_rule(cfi, first),
			 (unsigned long long)expected_rule(cfi, last));
}

/* Each `step`th row. */
static void compare(struct elf_file *f, Elf *elf, uint32_t step)
{
	Dwarf_CFI *cfi = dwarf_getcfi_elf(elf);
	struct unwind_table t = {0};

	assert_non_null(cfi);
	assert_int_equal(unwind_table__build(f, &t), 0);
	assert_true(unwind_table__valid(&t));
	assert_int_equal(t.skipped_nr, 0);
	assert_true(t.rows_nr > 2);
	for (uint32_t i = 1; i < t.rows_nr; i += step)
		compare_row(&t, cfi, i);
	unwind_table__done(&t);
	dwarf_cfi_end(cfi);
}

static void compare_file(const char *path, uint32_t step)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct reason why = {0};
	struct elf_file *f;
	Elf *elf;

	assert_true(fd >= 0);
	(void)elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	assert_non_null(elf);
	if (elf_file__open(path, &why, &f))
		fail_msg("%s", why.text);
	compare(f, elf, step);
	elf_file__free(f);
	(void)elf_end(elf);
	(void)close(fd);
}

static void test_rows_of_the_c_library(void **state)
{
	compare_file(LIBC, 1);
	compare_file(LOADER, 1);
}

static void test_rows_of_python(void **state)
{
	compare_file("/usr/bin/python3", 1);
}

static void test_rows_of_torch(void **state)
{
	if (access(TORCH, R_OK))
		skip();
	compare_file(TORCH, 97);
}

/* ---- single rules ---- */

static struct elf_file *open_it(const char *path)
{
	struct elf_file *f;

	assert_int_equal(elf_file__open(path, NULL, &f), 0);
	return f;
}

static uint64_t rule_of_kind(const struct unwind_table *t, enum gp_unwind_cfa kind)
{
	for (uint32_t i = 0; i < t->rules_nr; i++)
		if (GP_UNWIND_RULE_CFA_KIND(t->words[t->rows_nr + i]) == kind)
			return t->words[t->rows_nr + i];
	return 0;
}

static void test_special_frames_of_the_c_library(void **state)
{
	struct elf_file *f = open_it(LIBC);
	struct unwind_table t = {0};

	assert_int_equal(unwind_table__build(f, &t), 0);
	/* The kernel's ucontext: rbp at 120, rsp at 160 and rip behind it. */
	assert_int_equal(rule_of_kind(&t, GP_UNWIND_SIGNAL),
			 rule(GP_UNWIND_SIGNAL, GP_UNWIND_BP_SP, 160, 120));
	assert_int_equal(rule_of_kind(&t, GP_UNWIND_PLT),
			 rule(GP_UNWIND_PLT, GP_UNWIND_BP_SAME, 8, 11));
	assert_int_equal(rule_of_kind(&t, GP_UNWIND_END), GP_UNWIND_END);
	assert_int_equal(rule_of_kind(&t, GP_UNWIND_HARD), GP_UNWIND_HARD);
	assert_true(t.hard_nr && t.hard_nr < t.rows_nr / 100);
	unwind_table__done(&t);
	elf_file__free(f);
}

static void test_vdso(void **state)
{
	struct unwind_table t = {0};
	uint64_t start, end;
	struct elf_file *f;

	assert_int_equal(vdso_find(getpid(), &start, &end), 0);
	assert_true(start < end);
	assert_int_equal(vdso_open(&f), 0);
	assert_int_equal(unwind_table__build(f, &t), 0);
	assert_true(unwind_table__valid(&t) && t.rows_nr > 2);
	unwind_table__done(&t);
	elf_file__free(f);
}

static void test_extremes_of_rules(void **state)
{
	uint64_t r = rule(GP_UNWIND_BP_AT, GP_UNWIND_BP_BP, -(1 << 23), (1 << 23) - 1);

	assert_int_equal(GP_UNWIND_RULE_CFA_KIND(r), GP_UNWIND_BP_AT);
	assert_int_equal(GP_UNWIND_RULE_BP_KIND(r), GP_UNWIND_BP_BP);
	assert_int_equal(GP_UNWIND_RULE_CFA(r), -(1 << 23));
	assert_int_equal(GP_UNWIND_RULE_BP(r), (1 << 23) - 1);
	r = rule(GP_UNWIND_SP, GP_UNWIND_BP_CFA, 8, -16);
	assert_int_equal(GP_UNWIND_RULE_CFA(r), 8);
	assert_int_equal(GP_UNWIND_RULE_BP(r), -16);
}

/* ---- the cache ---- */

struct cached {
	char dir[64], path[256];
	uint8_t key[DIGEST_BYTES];
	struct elf_file *file;
	struct unwind_table built;
};

static void make_cached(struct cached *c)
{
	struct unwind_table again = {0};
	char text[DIGEST_TEXT_BYTES];
	const unsigned char *data;
	uint64_t address;
	size_t bytes;

	(void)strcpy(c->dir, "/tmp/gpuprof-unwind-XXXXXX");
	assert_non_null(mkdtemp(c->dir));
	c->file = open_it(LIBC);
	assert_int_equal(unwind_cache_get(c->file, c->dir, &c->built), 0);
	assert_int_equal(elf_file__section(c->file, ".eh_frame", &data, &bytes, &address), 0);
	unwind_cache_key(data, bytes, address, c->key);
	digest_text(c->key, text);
	(void)snprintf(c->path, sizeof(c->path), "%s/%s.unwind", c->dir, text);
	assert_int_equal(access(c->path, R_OK), 0);
	assert_int_equal(unwind_cache_get(c->file, c->dir, &again), 0);
	assert_int_equal(again.words_nr, c->built.words_nr);
	assert_memory_equal(again.words, c->built.words, again.words_nr * sizeof(uint64_t));
	unwind_table__done(&again);
}

static void free_cached(struct cached *c)
{
	unwind_table__done(&c->built);
	elf_file__free(c->file);
	(void)unlink(c->path);
	(void)rmdir(c->dir);
}

/* Whatever is done to the file, the table is the right one. */
static void damage(struct cached *c, off_t at, size_t bytes, int byte)
{
	int fd = open(c->path, O_RDWR | O_CLOEXEC);
	struct unwind_table t = {0};
	char change[16];

	memset(change, byte, sizeof(change));
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, change, bytes, at), bytes);
	(void)close(fd);
	assert_int_equal(unwind_cache_get(c->file, c->dir, &t), 0);
	assert_int_equal(t.words_nr, c->built.words_nr);
	assert_memory_equal(t.words, c->built.words, t.words_nr * sizeof(uint64_t));
	unwind_table__done(&t);
}

static void test_damaged_cache(void **state)
{
	struct cached c;
	struct stat st;

	make_cached(&c);
	assert_int_equal(stat(c.path, &st), 0);
	for (off_t at = 4; at <= 136; at += 4)
		damage(&c, st.st_size - at, 4, 0xa5);
	damage(&c, 0, 4, 0xa5);
	damage(&c, st.st_size / 2, 1, 0xff);
	damage(&c, st.st_size - 1, 1, 0x77);
	damage(&c, st.st_size, 8, 0);
	assert_int_equal(truncate(c.path, st.st_size - 8), 0);
	damage(&c, 0, 0, 0);
	assert_int_equal(truncate(c.path, 10), 0);
	damage(&c, 0, 0, 0);
	free_cached(&c);
}

/* All that a table is made from says which one it is; a build-id does not matter. */
static void test_another_files_cache(void **state)
{
	static const unsigned char section[] = {1, 2, 3};
	uint8_t other[DIGEST_BYTES], key[DIGEST_BYTES];
	struct unwind_table t = {0};
	struct cached c;

	make_cached(&c);
	unwind_cache_key(section, 3, 0x1000, key);
	assert_int_equal(unwind_cache_load(c.dir, key, &t), -ENOENT);
	unwind_cache_key(section, 3, 0x1001, other);
	assert_memory_not_equal(key, other, DIGEST_BYTES);
	unwind_cache_key(section, 2, 0x1000, other);
	assert_memory_not_equal(key, other, DIGEST_BYTES);
	free_cached(&c);
}

/* A file under the name of another one's table. */
static void test_renamed_cache(void **state)
{
	static const unsigned char section[] = {1, 2, 3};
	char path[256], text[DIGEST_TEXT_BYTES];
	uint8_t key[DIGEST_BYTES];
	struct unwind_table t = {0};
	struct cached c;

	make_cached(&c);
	unwind_cache_key(section, 3, 0x1000, key);
	digest_text(key, text);
	(void)snprintf(path, sizeof(path), "%s/%s.unwind", c.dir, text);
	assert_int_equal(rename(c.path, path), 0);
	assert_int_equal(unwind_cache_load(c.dir, key, &t), -ENOENT);
	assert_int_equal(unlink(path), 0);
	free_cached(&c);
}

/* A table that is whole by its checksum, and yet leads nowhere. */
static void test_tables_that_make_no_sense(void **state)
{
	uint64_t words[] = {0, 1ULL << 32 | 1, GP_UNWIND_NONE, GP_UNWIND_END, 2ULL << 32};
	struct unwind_table t = {
		.words = words, .words_nr = 5, .rows_nr = 2, .rules_nr = 2, .pages_nr = 1};

	assert_true(unwind_table__valid(&t));
	assert_int_equal(unwind_table__rule(&t, 0), GP_UNWIND_NONE);
	assert_int_equal(unwind_table__rule(&t, 1), GP_UNWIND_END);
	assert_int_equal(unwind_table__rule(&t, 1 << GP_UNWIND_PAGE_SHIFT), GP_UNWIND_NONE);
	words[1] = 1ULL << 32 | 2;
	assert_false(unwind_table__valid(&t));
	words[1] = 1;
	assert_false(unwind_table__valid(&t));
	words[1] = 1ULL << 32;
	words[4] = 3ULL << 32;
	assert_false(unwind_table__valid(&t));
	words[4] = 1ULL << 32 | 1;
	assert_false(unwind_table__valid(&t));
	words[4] = 2ULL << 32;
	t.pages_nr = UINT32_MAX;
	assert_false(unwind_table__valid(&t));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows_of_the_c_library),
		cmocka_unit_test(test_rows_of_python),
		cmocka_unit_test(test_rows_of_torch),
		cmocka_unit_test(test_special_frames_of_the_c_library),
		cmocka_unit_test(test_vdso),
		cmocka_unit_test(test_extremes_of_rules),
		cmocka_unit_test(test_damaged_cache),
		cmocka_unit_test(test_another_files_cache),
		cmocka_unit_test(test_renamed_cache),
		cmocka_unit_test(test_tables_that_make_no_sense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
