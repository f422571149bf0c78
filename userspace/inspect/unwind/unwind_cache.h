/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Unwind tables on disk. A table is stored under the digest of what it was built from, so a table
 * in the cache is either the right one or is not used.
 */
#ifndef GP_INSPECT_UNWIND_UNWIND_CACHE_H
#define GP_INSPECT_UNWIND_UNWIND_CACHE_H

#include "base/digest.h"
#include "inspect/elf/elf.h"
#include "inspect/unwind/unwind_table.h"

#include <stdint.h>

/* Loads the file's table from `dir`, or builds it and stores it there. A store that fails is
 * ignored: the next call builds the table again. `dir` NULL: always builds. Errors are those of
 * unwind_table__build(). The caller calls unwind_table__done(). */
int unwind_cache_get(struct elf_file *f, const char *dir, struct unwind_table *ret_table);

/* Digests what a table is built from: the content of .eh_frame and its address. */
void unwind_cache_key(const void *eh_frame, size_t bytes, uint64_t address,
		      uint8_t ret_key[DIGEST_BYTES]);

/* Loads the table with this key. 0, and the caller calls unwind_table__done(); -ENOENT: there is
 * none, or it is damaged. */
int unwind_cache_load(const char *dir, const uint8_t key[DIGEST_BYTES],
		      struct unwind_table *ret_table);

/* Stores a table under its key and keeps the folder's size within its limit. 0 or -errno. */
int unwind_cache_store(const char *dir, const uint8_t key[DIGEST_BYTES],
		       const struct unwind_table *t);

#endif /* GP_INSPECT_UNWIND_UNWIND_CACHE_H */
