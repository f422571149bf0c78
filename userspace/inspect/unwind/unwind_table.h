/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The unwind table of one file, in the form in which the kernel's walk searches it (bpf/wire.h:
 * rows, rules, pages). Made from .eh_frame once and kept on disk by the digest of that.
 */
#ifndef GP_INSPECT_UNWIND_UNWIND_TABLE_H
#define GP_INSPECT_UNWIND_UNWIND_TABLE_H

#include "base/digest.h"
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

/* Builds the table. 0; -ENOENT: the file has no unwind information; -E2BIG: more than any real file
 * has; -ENOMEM. The caller calls unwind_table__done(). */
int unwind_table__build(struct elf_file *f, struct unwind_table *ret_table);

/* The same, from `dir` if a table of this very .eh_frame is there, else built and put there (a
 * failure to do so is only slower next time). `dir` NULL: no cache. */
int unwind_table__get(struct elf_file *f, const char *dir, struct unwind_table *ret_table);

void unwind_table__done(struct unwind_table *t);

/* The rule that holds at an ELF address: GP_UNWIND_NONE where none is told. What the kernel's walk
 * would find. */
uint64_t unwind_table__rule(const struct unwind_table *t, uint64_t address);

/* Whether the kernel's walk would find its way in the words, whoever made them. */
bool unwind_table__valid(const struct unwind_table *t);

/* The digest of all that a table is made from: the content of .eh_frame and where it is loaded. */
void unwind_cache_key(const void *eh_frame, size_t bytes, uint64_t address,
		      uint8_t ret_key[DIGEST_BYTES]);

/* The cache alone: 0, or -ENOENT if there is no table of that key that can be used (the caller
 * calls unwind_table__done()); and 0 or -errno. */
int unwind_cache_load(const char *dir, const uint8_t key[DIGEST_BYTES],
		      struct unwind_table *ret_table);
int unwind_cache_store(const char *dir, const uint8_t key[DIGEST_BYTES],
		       const struct unwind_table *t);

#endif /* GP_INSPECT_UNWIND_UNWIND_TABLE_H */
