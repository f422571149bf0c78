/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Walks everything that inspect/elf/elf.h offers over a file that may be damaged. Sums are kept so
 * that a sanitizer sees each byte read that the reader says is there.
 */
#include "unit/elf_exercise.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "inspect/elf/elf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define CODE_MAX 300

struct walk {
	struct elf_file *file;
	size_t file_bytes;
	unsigned int sum;
	unsigned int looked_up; /* lookups are linear: a few are enough */
};

static void must(int ok)
{
	if (!ok)
		abort();
}

static void read_bytes(struct walk *w, const unsigned char *data, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		w->sum = w->sum * 31 + data[i];
}

static int visit(const struct elf_symbol *sym, void *arg)
{
	struct walk *w = arg;
	const unsigned char *code;
	struct elf_symbol again;
	uint64_t offset;
	size_t bytes;

	must(sym->name[0] != '\0');
	read_bytes(w, (const unsigned char *)sym->name, strlen(sym->name));
	must(sym->file_offset < w->file_bytes);
	must(elf_file__offset_of(w->file, sym->address, &offset) && offset == sym->file_offset);
	code = elf_file__code(w->file, sym->file_offset, CODE_MAX, &bytes);
	if (code) {
		must(bytes && bytes <= CODE_MAX && bytes <= w->file_bytes - sym->file_offset);
		read_bytes(w, code, bytes);
	}
	if (w->looked_up < 4) {
		w->looked_up++;
		must(!elf_file__symbol(w->file, sym->name, &again));
		must(!strcmp(again.name, sym->name));
	}
	return 0;
}

static void walk_sections(struct walk *w)
{
	static const char *const names[] = {".text", ".rodata",	 ".eh_frame", ".shstrtab",
					    ".bss",  ".dynamic", "",	      "no such"};
	const unsigned char *data;
	uint64_t address;
	size_t bytes;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (elf_file__section(w->file, names[i], &data, &bytes, &address))
			continue;
		must(bytes <= w->file_bytes);
		read_bytes(w, data, bytes);
	}
}

static void walk_offsets(struct walk *w)
{
	static const uint64_t odd[] = {0, 1, 0x1000, 0x7fffffffffffffff, 0xffffffffffffffff};
	uint64_t out;
	size_t bytes;

	for (size_t i = 0; i < sizeof(odd) / sizeof(*odd); i++) {
		if (elf_file__offset_of(w->file, odd[i], &out))
			must(out < w->file_bytes);
		if (elf_file__code(w->file, odd[i], 64, &bytes))
			must(odd[i] < w->file_bytes && bytes && bytes <= 64);
		(void)elf_file__load_bias(w->file, odd[i], odd[i] & ~0xfffULL, &out);
	}
}

int elf_exercise(const void *data, size_t bytes)
{
	CLEANUP(cleanup_fd) int fd = memfd_create("elf", MFD_CLOEXEC);
	struct walk w = {.file_bytes = bytes};
	struct reason why = {""};
	char path[64];
	int err;

	must(fd >= 0 && !file_write_all(fd, data, bytes));
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	err = elf_file__open(path, &why, &w.file);
	if (err) {
		must(err < 0 && why.text[0]);
		return 0;
	}
	must(strlen(elf_file__build_id(w.file)) <= (size_t)2 * ELF_BUILD_ID_BYTES);
	must(!elf_file__each_symbol(w.file, "", visit, &w));
	walk_sections(&w);
	walk_offsets(&w);
	elf_file__free(w.file);
	return 1;
}
