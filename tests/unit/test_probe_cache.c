/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Libraries made byte by byte, the build-id of which is another library's: whatever was planned for
 * one of them before, another one's plan is its own. And files of the cache that somebody else
 * could have made.
 */
#include "base/cleanup.h"
#include "base/file.h"
#include "base/hash.h"
#include "probe/plan/plan.h"

#include <elf.h>
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

#define NOBODY	  65534
#define CODE_AT	  0x1000
#define SECOND_AT 0x1040
#define CALLER_AT 0x1080
#define ASKED_AT  0x10c0
#define FDE_AT	  0x1800
#define SECTIONS  6

#define FIRST  "_ZN2at4_ops10add_Tensor4callEi"
#define SECOND "_ZN2at4_ops10sub_Tensor4callEi"
/* Whoever calls it calls an operator. */
#define ASKED "_ZN2at27getStepCallbacksUnlessEmptyENS_11RecordScopeE"

static const char symbol_names[] = "\0" FIRST "\0" SECOND "\0" ASKED;
static const char section_names[] = "\0.dynsym\0.dynstr\0.rodata\0.eh_frame_hdr\0.shstrtab";

/* .eh_frame_hdr of one function, and what it leads to. */
struct unwind_index {
	unsigned char head[4];
	int32_t eh_frame;
	uint32_t nr;
	int32_t begin, fde;
};

struct unwind_entry {
	uint32_t bytes, cie;
	int32_t begin;
	uint32_t function_bytes;
};

struct image {
	Elf64_Ehdr header;
	Elf64_Phdr segments[2];
	Elf64_Nhdr note;
	char owner[4];
	unsigned char build_id[ELF_BUILD_ID_BYTES];
	Elf64_Shdr sections[SECTIONS];
	Elf64_Sym symbols[4];
	char symbol_names[sizeof(symbol_names)];
	char section_names[sizeof(section_names)];
	char schemas[256];
	struct unwind_index index;
	_Alignas(0x1000) unsigned char code[0x1000];
};

_Static_assert(offsetof(struct image, code) == CODE_AT, "code is where the symbols say");

/* push; mov $..., %eax; pop; ret. What looks like its end from inside the mov is none. */
static const unsigned char first_code[] = {0x55, 0xb8, 0x90, 0x5d, 0xc3, 0x90, 0x5d, 0xc3};
/* push; nop; nop; pop; ret, and bytes that nobody comes to. */
static const unsigned char crafted_code[] = {0x55, 0x90, 0x90, 0x5d, 0xc3, 0x90, 0x5d, 0xc3};
/* push; nop; pop; ret */
static const unsigned char second_code[] = {0x55, 0x90, 0x5d, 0xc3};
/* mov $0x55, %al; push; xor %edi, %edi; xor %esi, %esi; call; pop; ret. With or without the first
 * byte it is a function. */
static const unsigned char caller_code[] = {0xb0, 0x55, 0x31, 0xff, 0x31, 0xf6, 0xe8,
					    0,	  0,	0,    0,    0x5d, 0xc3};
#define CALL_IN_CALLER 6

static void set_section(struct image *im, size_t i, uint32_t name, uint32_t type, size_t at,
			size_t bytes)
{
	im->sections[i] = (Elf64_Shdr){
		.sh_name = name, .sh_type = type, .sh_addr = at, .sh_offset = at, .sh_size = bytes};
}

static void set_symbol(struct image *im, size_t i, uint32_t name, uint64_t at, uint64_t bytes)
{
	im->symbols[i] = (Elf64_Sym){.st_name = name,
				     .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
				     .st_shndx = 1,
				     .st_value = at,
				     .st_size = bytes};
}

/* Where the unwind table says that the caller begins. */
static void set_caller(struct image *im, uint64_t at, uint32_t bytes)
{
	struct unwind_entry entry = {
		.bytes = 12,
		.begin = (int32_t)(at - (FDE_AT + offsetof(struct unwind_entry, begin))),
		.function_bytes = bytes};
	size_t index_at = offsetof(struct image, index);

	im->index = (struct unwind_index){.head = {0x01, 0x1b, 0x03, 0x3b},
					  .nr = 1,
					  .begin = (int32_t)(at - index_at),
					  .fde = (int32_t)(FDE_AT - index_at)};
	memcpy(im->code + (FDE_AT - CODE_AT), &entry, sizeof(entry));
}

static void set_call(struct image *im, uint64_t to)
{
	int32_t distance = (int32_t)(to - (CALLER_AT + CALL_IN_CALLER + 5));

	memcpy(im->code + (CALLER_AT - CODE_AT + CALL_IN_CALLER + 1), &distance, sizeof(distance));
}

static void set_headers(struct image *im)
{
	im->header = (Elf64_Ehdr){.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
					      ELFDATA2LSB, EV_CURRENT},
				  .e_type = ET_DYN,
				  .e_machine = EM_X86_64,
				  .e_version = EV_CURRENT,
				  .e_phoff = offsetof(struct image, segments),
				  .e_shoff = offsetof(struct image, sections),
				  .e_phentsize = sizeof(Elf64_Phdr),
				  .e_phnum = 2,
				  .e_shentsize = sizeof(Elf64_Shdr),
				  .e_shnum = SECTIONS,
				  .e_shstrndx = 5};
	im->segments[0] = (Elf64_Phdr){.p_type = PT_LOAD,
				       .p_flags = PF_R | PF_X,
				       .p_filesz = sizeof(*im),
				       .p_memsz = sizeof(*im)};
	im->segments[1] = (Elf64_Phdr){.p_type = PT_NOTE,
				       .p_flags = PF_R,
				       .p_offset = offsetof(struct image, note),
				       .p_filesz = sizeof(im->note) + 4 + ELF_BUILD_ID_BYTES,
				       .p_memsz = sizeof(im->note) + 4 + ELF_BUILD_ID_BYTES};
	im->note = (Elf64_Nhdr){4, ELF_BUILD_ID_BYTES, NT_GNU_BUILD_ID};
	memcpy(im->owner, "GNU", 4);
	memset(im->build_id, 0xab, sizeof(im->build_id));
	set_section(im, 1, 1, SHT_DYNSYM, offsetof(struct image, symbols), sizeof(im->symbols));
	im->sections[1].sh_link = 2;
	set_section(im, 2, 9, SHT_STRTAB, offsetof(struct image, symbol_names),
		    sizeof(im->symbol_names));
	set_section(im, 3, 17, SHT_PROGBITS, offsetof(struct image, schemas), sizeof(im->schemas));
	set_section(im, 4, 25, SHT_PROGBITS, offsetof(struct image, index), sizeof(im->index));
	set_section(im, 5, 39, SHT_STRTAB, offsetof(struct image, section_names),
		    sizeof(im->section_names));
}

/* The real library. */
static void make_real(struct image *im)
{
	memset(im, 0, sizeof(*im));
	set_headers(im);
	memcpy(im->symbol_names, symbol_names, sizeof(symbol_names));
	memcpy(im->section_names, section_names, sizeof(section_names));
	(void)snprintf(im->schemas + 1, sizeof(im->schemas) - 1,
		       "aten::add.Tensor(Tensor self) -> Tensor");
	set_symbol(im, 1, 1, CODE_AT, sizeof(first_code));
	set_symbol(im, 2, 1 + sizeof(FIRST), SECOND_AT, sizeof(second_code));
	set_symbol(im, 3, 1 + sizeof(FIRST) + sizeof(SECOND), ASKED_AT, 1);
	memcpy(im->code, first_code, sizeof(first_code));
	memcpy(im->code + (SECOND_AT - CODE_AT), second_code, sizeof(second_code));
	memcpy(im->code + (CALLER_AT - CODE_AT), caller_code, sizeof(caller_code));
	im->code[ASKED_AT - CODE_AT] = 0xc3;
	set_call(im, ASKED_AT);
	set_caller(im, CALLER_AT, sizeof(caller_code));
}

/* ---- plans ---- */

static char folder[] = "/tmp/gpuprof-poison-XXXXXX", cache[64];

static struct probe_plan *plan_image(const char *name, const struct image *im, const char *dir)
{
	struct probe_plan *plan;
	struct reason why = {""};
	char path[256];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(file_write_all(fd, im, sizeof(*im)), 0);
	assert_int_equal(close(fd), 0);
	if (probe_plan__new(path, dir, &why, &plan))
		fail_msg("%s", why.text);
	assert_int_equal(unlink(path), 0);
	return plan;
}

static void compare_plans(const struct probe_plan *got, const struct probe_plan *right)
{
	assert_int_equal(got->functions.nr, right->functions.nr);
	for (size_t i = 0; i < right->functions.nr; i++) {
		const struct probe_function *a = &got->functions.items[i];
		const struct probe_function *b = &right->functions.items[i];

		assert_string_equal(a->symbol, b->symbol);
		assert_string_equal(a->name, b->name);
		assert_string_equal(a->overload, b->overload);
		assert_int_equal(a->kind, b->kind);
		assert_int_equal(a->placed, b->placed);
	}
	assert_int_equal(got->sites.nr, right->sites.nr);
	for (size_t i = 0; i < right->sites.nr; i++) {
		assert_int_equal(got->sites.items[i].offset, right->sites.items[i].offset);
		assert_int_equal(got->sites.items[i].is_exit, right->sites.items[i].is_exit);
		assert_int_equal(got->sites.items[i].sp_delta, right->sites.items[i].sp_delta);
	}
}

static void remove_matches(const char *pattern)
{
	char path[128];
	glob_t found;

	(void)snprintf(path, sizeof(path), "%s/%s", cache, pattern);
	if (glob(path, 0, NULL, &found))
		return;
	for (size_t i = 0; i < found.gl_pathc; i++)
		assert_int_equal(unlink(found.gl_pathv[i]), 0);
	globfree(&found);
}

/* The real library's plan is right, after the crafted one has been planned with the same cache. */
static void check_not_poisoned(const struct image *crafted)
{
	struct probe_plan *plan, *right;
	struct image real;

	make_real(&real);
	right = plan_image("real.so", &real, NULL);
	/* Entries and exits of two operators and of one caller. */
	assert_int_equal(right->functions.nr, 3);
	assert_int_equal(right->sites.nr, 6);
	assert_int_equal(right->not_placed_nr, 0);
	probe_plan__free(plan_image("crafted.so", crafted, cache));
	/* The first time, and with what that has left. */
	for (int i = 0; i < 2; i++) {
		plan = plan_image("real.so", &real, cache);
		compare_plans(plan, right);
		probe_plan__free(plan);
	}
	probe_plan__free(right);
	remove_matches("*");
}

/* ---- crafted libraries ---- */

static uint64_t inverse(uint64_t odd)
{
	uint64_t x = odd;

	for (int i = 0; i < 6; i++)
		x *= 2 - odd * x;
	return x;
}

/* What hash_mix() makes the key of. */
static uint64_t unmix(uint64_t key)
{
	key ^= key >> 33;
	key *= inverse(0xc4ceb9fe1a85ec53ULL);
	key ^= key >> 33;
	key *= inverse(0xff51afd7ed558ccdULL);
	key ^= key >> 33;
	return key;
}

/* What cached plans were known by: 64 bits of symbols and code, by functions that anybody can turn
 * round. `bytes` 0: so far as the size of the last. */
static uint64_t weak_sum(uint64_t sum, const char *name, uint64_t offset)
{
	sum = hash_mix(sum ^ hash_bytes(name, strlen(name)));
	return hash_mix(sum ^ offset);
}

static uint64_t weak_sum_of_code(uint64_t sum, const unsigned char *code, size_t bytes)
{
	return hash_mix(hash_mix(sum ^ bytes) ^ hash_bytes(code, bytes));
}

/* A library of the same build-id and the same weak sum, with other code in the first function: its
 * second function has such a size that the sums meet. */
static void test_colliding_library(void **state)
{
	struct image crafted;
	uint64_t real, sum, size;

	real = weak_sum_of_code(weak_sum(hash_mix(2), FIRST, CODE_AT), first_code,
				sizeof(first_code));
	real = weak_sum_of_code(weak_sum(real, SECOND, SECOND_AT), second_code,
				sizeof(second_code));
	sum = weak_sum_of_code(weak_sum(hash_mix(2), FIRST, CODE_AT), crafted_code,
			       sizeof(crafted_code));
	sum = weak_sum(sum, SECOND, SECOND_AT);
	size = unmix(real) ^ sum;
	assert_true(hash_mix(sum ^ size) == real);
	/* Too large to be looked at, so nothing of its code counts. */
	assert_true(size > 1ULL << 32);
	make_real(&crafted);
	memcpy(crafted.code, crafted_code, sizeof(crafted_code));
	set_symbol(&crafted, 2, 1 + sizeof(FIRST), SECOND_AT, size);
	check_not_poisoned(&crafted);
}

/* The unwind table says that the caller begins inside its first instruction. */
static void test_function_that_begins_elsewhere(void **state)
{
	struct image crafted;

	make_real(&crafted);
	set_caller(&crafted, CALLER_AT + 1, sizeof(caller_code) - 1);
	check_not_poisoned(&crafted);
}

/* What is searched for is not there, or is something else. */
static void test_other_names_and_calls(void **state)
{
	struct image crafted;

	make_real(&crafted);
	memset(crafted.schemas, 0, sizeof(crafted.schemas));
	check_not_poisoned(&crafted);
	make_real(&crafted);
	(void)snprintf(crafted.schemas + 1, sizeof(crafted.schemas) - 1,
		       "aten::add_Tensor(Tensor self) -> Tensor");
	check_not_poisoned(&crafted);
	make_real(&crafted);
	set_call(&crafted, CODE_AT);
	check_not_poisoned(&crafted);
}

/* All functions begin a byte later than they do. */
static void test_other_symbols(void **state)
{
	struct image crafted;

	make_real(&crafted);
	set_symbol(&crafted, 1, 1, CODE_AT + 1, sizeof(first_code) - 1);
	check_not_poisoned(&crafted);
	make_real(&crafted);
	set_symbol(&crafted, 3, 1 + sizeof(FIRST) + sizeof(SECOND), CODE_AT + 3, 1);
	check_not_poisoned(&crafted);
}

/* ---- files of the cache ---- */

static void find_plan(char *ret_path, size_t bytes)
{
	char pattern[128];
	glob_t found;

	(void)snprintf(pattern, sizeof(pattern), "%s/*.plan", cache);
	assert_int_equal(glob(pattern, 0, NULL, &found), 0);
	assert_int_equal(found.gl_pathc, 1);
	(void)snprintf(ret_path, bytes, "%s", found.gl_pathv[0]);
	globfree(&found);
}

/* A file of which the plan is in the cache, where somebody has done something to that. */
struct poisoned {
	char library[128], plan[256], elsewhere[128];
	struct probe_plan *right;
};

static struct probe_plan *plan_library(const struct poisoned *p, const char *dir)
{
	struct probe_plan *plan;

	assert_int_equal(probe_plan__new(p->library, dir, NULL, &plan), 0);
	return plan;
}

static void begin_poisoned(struct poisoned *p)
{
	struct image real;
	int fd;

	make_real(&real);
	(void)snprintf(p->library, sizeof(p->library), "%s/library.so", folder);
	(void)snprintf(p->elsewhere, sizeof(p->elsewhere), "%s/elsewhere", folder);
	fd = open(p->library, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(file_write_all(fd, &real, sizeof(real)), 0);
	assert_int_equal(close(fd), 0);
	p->right = plan_library(p, NULL);
	probe_plan__free(plan_library(p, cache));
	find_plan(p->plan, sizeof(p->plan));
}

/* The plan is right, and what the cache has for the next time is one's own again. */
static void end_poisoned(struct poisoned *p)
{
	struct probe_plan *plan = plan_library(p, cache);
	struct stat st;

	compare_plans(plan, p->right);
	assert_int_equal(lstat(p->plan, &st), 0);
	assert_true(S_ISREG(st.st_mode));
	assert_int_equal(st.st_uid, geteuid());
	assert_int_equal(st.st_mode & 07777, 0600);
	probe_plan__free(plan);
	probe_plan__free(p->right);
	assert_int_equal(unlink(p->library), 0);
	remove_matches("*");
}

/* Bends the first site into the instruction behind it. */
static void poison(const char *path)
{
	uint64_t site = CODE_AT;
	char *text, *at;
	size_t nr;
	int fd;

	assert_int_equal(file_read(path, 1 << 20, &text, &nr), 0);
	/* The functions come first, and hold the offset too. */
	at = memmem(text, nr, &site, sizeof(site));
	assert_non_null(at);
	at = memmem(at + 1, (size_t)(text + nr - at - 1), &site, sizeof(site));
	assert_non_null(at);
	*at += 3;
	fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(file_write_all(fd, text, nr), 0);
	assert_int_equal(close(fd), 0);
	free(text);
}

static void test_site_inside_an_instruction(void **state)
{
	struct poisoned p;

	begin_poisoned(&p);
	poison(p.plan);
	end_poisoned(&p);
}

static void test_modes_and_owners(void **state)
{
	static const mode_t modes[] = {0666, 0660, 0602};
	struct poisoned p;

	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		begin_poisoned(&p);
		assert_int_equal(chmod(p.plan, modes[i]), 0);
		end_poisoned(&p);
	}
	if (geteuid())
		return;
	begin_poisoned(&p);
	assert_int_equal(chown(p.plan, NOBODY, NOBODY), 0);
	end_poisoned(&p);
}

/* A good plan, but by a link; it is not written through either. */
static void test_link_in_its_place(void **state)
{
	struct poisoned p;
	struct stat before, after;

	begin_poisoned(&p);
	assert_int_equal(rename(p.plan, p.elsewhere), 0);
	assert_int_equal(symlink(p.elsewhere, p.plan), 0);
	assert_int_equal(stat(p.elsewhere, &before), 0);
	end_poisoned(&p);
	assert_int_equal(stat(p.elsewhere, &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	assert_int_equal(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
	assert_int_equal(unlink(p.elsewhere), 0);
}

static void test_fifo_in_its_place(void **state)
{
	struct poisoned p;

	begin_poisoned(&p);
	assert_int_equal(unlink(p.plan), 0);
	assert_int_equal(mkfifo(p.plan, 0600), 0);
	/* Ends the program if it waits for a writer. */
	(void)alarm(60);
	end_poisoned(&p);
	(void)alarm(0);
}

/* Nothing is read from such a folder, and nothing written. */
static void test_folder_of_others(void **state)
{
	struct probe_plan *plan;
	struct poisoned p;
	struct stat st;

	begin_poisoned(&p);
	assert_int_equal(unlink(p.plan), 0);
	assert_int_equal(chmod(cache, 0777), 0);
	plan = plan_library(&p, cache);
	compare_plans(plan, p.right);
	probe_plan__free(plan);
	assert_int_equal(lstat(p.plan, &st), -1);
	assert_int_equal(chmod(cache, 0700), 0);
	end_poisoned(&p);
}

/* A file that is as it was is not planned again: what is in the cache stays as it is. Written to,
 * it is searched again. */
static void test_cache_is_used(void **state)
{
	struct poisoned p;
	struct stat before, after;
	char searched[128];
	glob_t found;

	begin_poisoned(&p);
	(void)snprintf(searched, sizeof(searched), "%s/searched-*", cache);
	assert_int_equal(glob(searched, 0, NULL, &found), 0);
	assert_int_equal(found.gl_pathc, 1);
	(void)snprintf(searched, sizeof(searched), "%s", found.gl_pathv[0]);
	globfree(&found);
	assert_int_equal(stat(searched, &before), 0);
	probe_plan__free(plan_library(&p, cache));
	assert_int_equal(stat(searched, &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	assert_int_equal(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
	assert_int_equal(unlink(searched), 0);
	assert_int_equal(stat(p.plan, &before), 0);
	probe_plan__free(plan_library(&p, cache));
	assert_int_equal(access(searched, R_OK), 0);
	assert_int_equal(stat(p.plan, &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	end_poisoned(&p);
}

static int set_up(void **state)
{
	if (!mkdtemp(folder))
		return -1;
	(void)snprintf(cache, sizeof(cache), "%s/cache", folder);
	return mkdir(cache, 0700);
}

static int tear_down(void **state)
{
	return rmdir(cache) || rmdir(folder) ? -1 : 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_colliding_library),
		cmocka_unit_test(test_function_that_begins_elsewhere),
		cmocka_unit_test(test_other_names_and_calls),
		cmocka_unit_test(test_other_symbols),
		cmocka_unit_test(test_site_inside_an_instruction),
		cmocka_unit_test(test_modes_and_owners),
		cmocka_unit_test(test_link_in_its_place),
		cmocka_unit_test(test_fifo_in_its_place),
		cmocka_unit_test(test_folder_of_others),
		cmocka_unit_test(test_cache_is_used),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
