/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What a stripped file left elsewhere: the debug file that the machine has for it.
 */
#ifndef GP_INSPECT_ELF_DEBUG_FILE_H
#define GP_INSPECT_ELF_DEBUG_FILE_H

#include "inspect/elf/elf.h"

/* The debug file of `f`, by its build-id under /usr/lib/debug, or else by the name in
 * .gnu_debuglink: beside the file, which is at `path` (NULL: not known), in .debug there, or under
 * /usr/lib/debug; then its checksum must be the one that the link tells. Of the machine's files,
 * not of the target's root. 0, -ENOENT, or an error as of elf_error_is_ours(). */
int debug_file_open(struct elf_file *f, const char *path, struct elf_file **ret_file);

#endif /* GP_INSPECT_ELF_DEBUG_FILE_H */
