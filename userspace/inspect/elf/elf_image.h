/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * ELF files that lie in no file system.
 */
#ifndef GP_INSPECT_ELF_ELF_IMAGE_H
#define GP_INSPECT_ELF_ELF_IMAGE_H

#include "inspect/elf/elf.h"

/* As elf_file__open() of a file with these bytes, which are copied. */
int elf_image__open(const void *image, size_t bytes, struct elf_file **ret_file);

/* The symbol table that distributions leave in stripped files (.gnu_debugdata, an ELF file of its
 * own, packed with xz). 0, -ENOENT: the file has none, or another -errno. */
int elf_image__mini_debug(struct elf_file *f, struct elf_file **ret_file);

#endif /* GP_INSPECT_ELF_ELF_IMAGE_H */
