/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Reads the source lines of an untrusted file. libdw does not validate everything that it reads, so
 * it runs in a sandboxed process that can neither open nor change anything; its answers are
 * validated.
 */
#ifndef GP_INSPECT_ELF_LINE_READER_H
#define GP_INSPECT_ELF_LINE_READER_H

#include "inspect/elf/elf.h"
#include "inspect/elf/lines.h"

#include <stdbool.h>
#include <stddef.h>

/* Whether the file's section headers show debug information. */
bool line_reader_can(struct elf_file *f);

/* Receives one answer: places as of lines__find(), with texts valid during the call. 0, or an
 * -errno that ends the reading. */
typedef int line_reader_fn(size_t i, const struct line_place *places, size_t nr, void *arg);

/* Calls fn for each ELF address with a known place. Stops after so much CPU time of that process,
 * but not before the first address. *ret_asked: how many addresses were looked up. 0, fn's result,
 * or -errno. */
int line_reader_ask(const struct elf_file *f, const uint64_t *addresses, size_t nr,
		    uint64_t budget_ns, line_reader_fn *fn, void *arg, size_t *ret_asked);

/* Parses an answer to `nr` addresses. Returns as line_reader_ask(), or -EBADMSG if it is malformed.
 */
int line_reader_parse(const unsigned char *bytes, size_t bytes_nr, size_t nr, line_reader_fn *fn,
		      void *arg, size_t *ret_asked);

#endif /* GP_INSPECT_ELF_LINE_READER_H */
