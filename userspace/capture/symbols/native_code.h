/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The code of all processes of a capture by address: in which file it lies, where, and in which
 * function. Symbols are read when the first frame of a file needs them, and shared by processes.
 * They are freed, and the file is closed, some time after the last process that maps it.
 */
#ifndef GP_CAPTURE_SYMBOLS_NATIVE_CODE_H
#define GP_CAPTURE_SYMBOLS_NATIVE_CODE_H

#include "inspect/elf/elf.h"
#include "inspect/process/process.h"

#include <stdbool.h>
#include <stdint.h>

struct native_codes;
struct file_users;

/* NULL when out of memory. */
struct native_codes *native_codes__new(void);
void native_codes__free(struct native_codes *c);

struct native_place {
	uint32_t module;       /* number of the file in this capture, from 0; ~0: no known file */
	uint64_t address;      /* ELF address in it; without a file that of the process */
	const char *path;      /* borrowed; "": no known file */
	const char *open_path; /* where to read it now, borrowed; NULL: it is no file */
	const char *build_id;  /* borrowed */
	const char *symbol;    /* as the file has it, borrowed; NULL: not known */
	uint32_t since;	       /* of the library, see struct target_library; 0: not one */
	bool unread; /* which function it is may be known later: its file cannot be read now */
};

/* Where an address of the process is, by what is mapped there as of the last look. 0 or -ENOMEM. */
int native_codes__place(struct native_codes *c, const struct target_process *p, uint64_t address,
			struct native_place *ret_place);

/* A recording begins. What nobody maps, and was not used in the two before, is put away; it is read
 * again when it is needed. */
void native_codes__poll(struct native_codes *c, const struct file_users *users);

/* Whether what the module's file tells is there. */
bool native_codes__has(const struct native_codes *c, uint32_t module);

/* The file that has debug information about a module, borrowed; NULL: none. */
const struct elf_file *native_codes__lines_file(struct native_codes *c, uint32_t module);

#endif /* GP_CAPTURE_SYMBOLS_NATIVE_CODE_H */
