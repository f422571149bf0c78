/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The unwind table of one file in the form that the kernel's walk searches (bpf/wire.h: rows,
 * rules, pages).
 */
#ifndef GP_INSPECT_UNWIND_UNWIND_TABLE_H
#define GP_INSPECT_UNWIND_UNWIND_TABLE_H

#include "inspect/elf/elf.h"

#include <stdint.h>

struct unwind_table {
	uint64_t *words; /* rows_nr rows, then rules_nr rules, then pages_nr pages */
	uint32_t words_nr;
	uint32_t rows_nr;
	uint32_t rules_nr;
	uint32_t first_page; /* page number of the first one */
	uint32_t pages_nr;
	uint32_t hard_nr;    /* rows of GP_UNWIND_HARD */
	uint64_t skipped_nr; /* records of .eh_frame that were not understood */
};

/* Builds the table from the file's .eh_frame. 0; -ENOENT: the file has no unwind information;
 * -E2BIG: more than any real file has; -ENOMEM. The caller calls unwind_table__done(). */
int unwind_table__build(struct elf_file *f, struct unwind_table *ret_table);

void unwind_table__done(struct unwind_table *t);

/* Returns the rule at an ELF address, as the kernel's walk would find it; GP_UNWIND_NONE where
 * there is none. */
uint64_t unwind_table__rule(const struct unwind_table *t, uint64_t address);

/* Whether the words form a table that the kernel's walk can search safely, whoever wrote them. */
bool unwind_table__valid(const struct unwind_table *t);

#endif /* GP_INSPECT_UNWIND_UNWIND_TABLE_H */
