/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The kernel's own library in every process. The image is the same in all 64-bit processes, so
 * gpuprof looks at its own; only where it lies differs.
 */
#ifndef GP_INSPECT_ELF_VDSO_H
#define GP_INSPECT_ELF_VDSO_H

#include "inspect/elf/elf.h"

#include <stdint.h>
#include <sys/types.h>

/* The image as a file of its own. 0 or -errno (-ENOENT: there is none). */
int vdso_open(struct elf_file **ret_file);

/* Where the process has it. 0, -ENOENT if it has none, or another -errno. */
int vdso_find(pid_t pid, uint64_t *ret_start, uint64_t *ret_end);

#endif /* GP_INSPECT_ELF_VDSO_H */
