/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Source lines of a file that is not trusted. libdw does not check all that it reads, so it does so
 * in a process of its own, which can neither open nor change anything; what that answers is
 * checked.
 */
#ifndef GP_INSPECT_ELF_LINE_READER_H
#define GP_INSPECT_ELF_LINE_READER_H

#include "inspect/elf/elf.h"
#include "inspect/elf/lines.h"

#include <stdbool.h>
#include <stddef.h>

/* Whether the file has debug information, as far as its section headers say. */
bool line_reader_can(struct elf_file *f);

/* Takes one answer: places as of lines__find(), their texts valid during the call. 0, or an -errno
 * that ends it. */
typedef int line_reader_fn(size_t i, const struct line_place *places, size_t nr, void *arg);

/* Calls fn for each ELF address that a place is known of. Ends after so much CPU time of that
 * process, but not before the first address. *ret_asked: how many addresses were looked up. 0, what
 * fn returned, or -errno. */
int line_reader_ask(const struct elf_file *f, const uint64_t *addresses, size_t nr,
		    uint64_t budget_ns, line_reader_fn *fn, void *arg, size_t *ret_asked);

/* Takes the bytes of an answer apart. `nr` addresses were asked for. As line_reader_ask();
 * -EBADMSG: it is none. */
int line_reader_parse(const unsigned char *bytes, size_t bytes_nr, size_t nr, line_reader_fn *fn,
		      void *arg, size_t *ret_asked);

#endif /* GP_INSPECT_ELF_LINE_READER_H */
