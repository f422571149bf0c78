/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Finds the separate debug file of a stripped file on this machine.
 */
#ifndef GP_INSPECT_ELF_DEBUG_FILE_H
#define GP_INSPECT_ELF_DEBUG_FILE_H

#include "inspect/elf/elf.h"

/* Opens the debug file of `f`: by its build-id under /usr/lib/debug, else by the name in
 * .gnu_debuglink, in the folder of the file (`path`, NULL: unknown), in .debug there, or under
 * /usr/lib/debug; then its checksum must match the link's. Searches the machine's files, not the
 * process's root. 0, -ENOENT, or an error as of elf_error_is_ours(). */
int debug_file_open(struct elf_file *f, const char *path, struct elf_file **ret_file);

#endif /* GP_INSPECT_ELF_DEBUG_FILE_H */
