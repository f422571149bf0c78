/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The ELF file's own struct, shared by elf.c, which reads the file, and elf_calls.c, which searches
 * its code. Only for this folder.
 */
#ifndef GP_INSPECT_ELF_ELF_PRIVATE_H
#define GP_INSPECT_ELF_ELF_PRIVATE_H

#include "base/hash.h"
#include "base/vec.h"
#include "inspect/elf/elf.h"

#include <elf.h>

/* Code read for elf_file__code(). */
struct code {
	uint64_t file_offset;
	unsigned char *bytes;
	size_t nr;
};

/* A symbol table and the names that belong to it; borrowed from section_data. */
struct symbol_table {
	const unsigned char *symbols;
	size_t nr;
	const char *names;
	size_t names_bytes; /* the last of them is a zero */
};

/* Everything in `segments` and `sections` lies inside the file, and no sum in them overflows. */
struct elf_file {
	int fd;
	const struct elf_file *code; /* NULL: itself; see elf_file__set_code() */
	uint64_t bytes;
	uint64_t read_bytes;
	int err;	      /* see elf_file__error() */
	Elf64_Phdr *segments; /* PT_LOAD and PT_NOTE only */
	size_t segments_nr;
	Elf64_Shdr *sections;
	unsigned char **section_data; /* NULL: not read yet */
	size_t sections_nr;
	size_t section_names;	       /* index */
	struct symbol_table tables[2]; /* .dynsym, .symtab; after elf_read_tables() */
	bool tables_ready;
	char build_id[2 * ELF_BUILD_ID_BYTES + 1];
	VEC(struct code) codes;
	struct hash code_at; /* file offset -> index of codes */
};

/* Reads the symbol tables, once. */
void elf_read_tables(struct elf_file *f);

/* Reads so many bytes of the file into buf. 0 or -errno; -ENOEXEC: they are not there. */
int elf_file__read(const struct elf_file *f, uint64_t offset, void *buf, uint64_t bytes);

#endif /* GP_INSPECT_ELF_ELF_PRIVATE_H */
