/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Walks everything that inspect/elf/elf.h offers over a file that may be damaged; used by the unit
 * test and the fuzz target.
 */
#ifndef GP_UNIT_ELF_EXERCISE_H
#define GP_UNIT_ELF_EXERCISE_H

#include <stddef.h>

/* Gives the bytes to the reader as a file and checks what it says of them; a broken promise is an
 * abort(). Returns whether it took them for an ELF file. */
int elf_exercise(const void *data, size_t bytes);

#endif /* GP_UNIT_ELF_EXERCISE_H */
