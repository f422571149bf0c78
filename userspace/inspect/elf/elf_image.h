/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * ELF files in memory.
 */
#ifndef GP_INSPECT_ELF_ELF_IMAGE_H
#define GP_INSPECT_ELF_ELF_IMAGE_H

#include "inspect/elf/elf.h"

/* Opens these bytes, which are copied, as elf_file__open() opens a file. */
int elf_image__open(const void *image, size_t bytes, struct elf_file **ret_file);

/* Opens the symbol table that distributions leave in stripped files (.gnu_debugdata: an ELF file of
 * its own, compressed with xz). 0, -ENOENT: there is none, or another -errno. */
int elf_image__mini_debug(struct elf_file *f, struct elf_file **ret_file);

#endif /* GP_INSPECT_ELF_ELF_IMAGE_H */
