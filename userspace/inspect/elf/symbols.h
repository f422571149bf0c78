/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The functions of an ELF file by address: from its own symbol tables, from the debug file if
 * the machine has it (see debug_file_open()), and else from what is packed into .gnu_debugdata.
 * Names are as they are in the file, not demangled.
 */
#ifndef GP_INSPECT_ELF_SYMBOLS_H
#define GP_INSPECT_ELF_SYMBOLS_H

#include "inspect/elf/elf.h"

#include <stdint.h>

struct symbols;

/* Takes the file over (frees it on failure too), which is at `path`, NULL: not known. 0, or -errno:
 * not all that it has could be read. */
int symbols__new(struct elf_file *f, const char *path, struct symbols **ret_symbols);
void symbols__free(struct symbols *s);

/* The name of the function that the ELF address lies in, borrowed; NULL if no symbol covers it. Of
 * several names of one function always the same: one without leading underscores, a short one. */
const char *symbols__name(const struct symbols *s, uint64_t address);

/* The file that has debug information about it, itself or its debug file, borrowed; NULL: none. */
const struct elf_file *symbols__lines_file(struct symbols *s);

/* Build-id of the file: see elf_file__build_id(). */
const char *symbols__build_id(const struct symbols *s);

#endif /* GP_INSPECT_ELF_SYMBOLS_H */
