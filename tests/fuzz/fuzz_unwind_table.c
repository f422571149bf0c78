/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Fuzzes the making of unwind tables from .eh_frame, in an ELF file made around the input, and what
 * takes a table from the cache for one that can be used. Whatever the builder makes must be such a
 * table, and no look-up in such a table may leave it.
 */
#include "base/cleanup.h"
#include "base/file.h"
#include "fuzz/fuzz_seed.h"
#include "inspect/elf/vdso.h"
#include "inspect/unwind/unwind_table.h"
#include "wire.h"

#include <elf.h>
#include <string.h>
#include <sys/mman.h>

#define SECTION_AT 0x1000
#define NAMES	   "\0.eh_frame\0.shstrtab"

struct image {
	Elf64_Ehdr header;
	Elf64_Phdr segment;
	Elf64_Shdr sections[3];
	char names[sizeof(NAMES)];
};

/* An ELF file whose only content is the .eh_frame given. */
static struct elf_file *make_file(const uint8_t *data, size_t bytes)
{
	CLEANUP(cleanup_fd) int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct image im = {
		.header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				       EV_CURRENT},
			   .e_type = ET_DYN,
			   .e_machine = EM_X86_64,
			   .e_version = EV_CURRENT,
			   .e_phoff = offsetof(struct image, segment),
			   .e_shoff = offsetof(struct image, sections),
			   .e_phentsize = sizeof(Elf64_Phdr),
			   .e_phnum = 1,
			   .e_shentsize = sizeof(Elf64_Shdr),
			   .e_shnum = 3,
			   .e_shstrndx = 2},
		.segment = {.p_type = PT_LOAD,
			    .p_flags = PF_R | PF_X,
			    .p_filesz = SECTION_AT + bytes,
			    .p_memsz = SECTION_AT + bytes},
		.sections[1] = {.sh_name = 1,
				.sh_type = SHT_PROGBITS,
				.sh_addr = SECTION_AT,
				.sh_offset = SECTION_AT,
				.sh_size = bytes},
		.sections[2] = {.sh_name = 11,
				.sh_type = SHT_STRTAB,
				.sh_offset = offsetof(struct image, names),
				.sh_size = sizeof(NAMES)},
		.names = NAMES,
	};
	struct elf_file *f;
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (fd < 0 || pwrite(fd, &im, sizeof(im), 0) != (ssize_t)sizeof(im) ||
	    pwrite(fd, data, bytes, SECTION_AT) != (ssize_t)bytes || elf_file__open(path, NULL, &f))
		abort();
	return f;
}

static void seed_section(int argc, char **argv, const char *name, struct elf_file *f)
{
	CLEANUP(cleanup_free) uint8_t *seed = NULL;
	const unsigned char *data;
	uint64_t address;
	size_t bytes;

	if (elf_file__section(f, ".eh_frame", &data, &bytes, &address))
		abort();
	bytes = bytes < 60000 ? bytes : 60000;
	seed = malloc(bytes + 1);
	if (!seed)
		abort();
	seed[0] = 0;
	memcpy(seed + 1, data, bytes);
	fuzz_seed(argc, argv, name, seed, bytes + 1);
	elf_file__free(f);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const char *const files[] = {"/bin/true", "/lib/x86_64-linux-gnu/libc.so.6"};
	uint64_t words[8] = {
		[1] = 2ULL << 32 | 2 << 16 | 1, [3] = 1ULL << 32 | 1, [5] = 1, [6] = 2ULL << 32};
	struct elf_file *f;

	for (size_t i = 0; i < 2; i++) {
		if (elf_file__open(files[i], NULL, &f))
			abort();
		seed_section(*argc, *argv, i ? "libc" : "true", f);
	}
	if (!vdso_open(&f))
		seed_section(*argc, *argv, "vdso", f);
	((uint8_t *)words)[0] = 1;
	fuzz_seed(*argc, *argv, "words", words, sizeof(words));
	return 0;
}

/* Every address at which the answer may change. */
static void look_up(const struct unwind_table *t)
{
	for (uint32_t i = 0; i < t->rows_nr; i++) {
		uint64_t address = t->words[i] >> 32;

		(void)unwind_table__rule(t, address);
		(void)unwind_table__rule(t, address - 1);
	}
	(void)unwind_table__rule(t, (uint64_t)t->first_page << GP_UNWIND_PAGE_SHIFT);
	(void)unwind_table__rule(t, UINT64_MAX);
}

static void build(const uint8_t *data, size_t bytes)
{
	CLEANUP(cleanup_elf) struct elf_file *f = make_file(data, bytes);
	struct unwind_table t = {0};

	if (unwind_table__build(f, &t))
		return;
	if (!unwind_table__valid(&t))
		abort();
	look_up(&t);
	unwind_table__done(&t);
}

/* A table as the cache might hold it. */
static void validate(const uint8_t *data, size_t bytes)
{
	struct unwind_table t = {0};
	uint64_t head[2];

	if (bytes < sizeof(head))
		return;
	memcpy(head, data, sizeof(head));
	t.words_nr = (uint32_t)((bytes - sizeof(head)) / sizeof(uint64_t));
	t.words = malloc(t.words_nr * sizeof(uint64_t) + 1);
	if (!t.words)
		abort();
	memcpy(t.words, data + sizeof(head), t.words_nr * sizeof(uint64_t));
	t.first_page = (uint32_t)(head[0] >> 32);
	t.rows_nr = (uint32_t)(head[1] >> 32);
	t.rules_nr = (uint16_t)(head[1] >> 16);
	t.pages_nr = (uint16_t)head[1];
	if (unwind_table__valid(&t))
		look_up(&t);
	unwind_table__done(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	if (bytes && data[0] == 1)
		validate(data, bytes);
	else if (bytes)
		build(data + 1, bytes - 1);
	return 0;
}
