/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Finds source lines, and functions inlined there, by address in the DWARF of an ELF file. The file
 * is not trusted: its size and every search in it are bounded.
 */
#ifndef GP_INSPECT_ELF_LINES_H
#define GP_INSPECT_ELF_LINES_H

#include <stdint.h>

/* The most functions that one address can be in. */
#define LINES_PLACES_MAX 32

/* Texts are borrowed. */
struct line_place {
	const char *function; /* as the file has it (mangled); NULL: not known */
	const char *file;     /* its source; NULL: not known */
	uint32_t line;	      /* 0: not known */
};

struct lines;

/* Opens the file of this descriptor, which must stay open as long. Follows references to other
 * files, so for an untrusted file call it only in a process that can do no harm (see
 * inspect/elf/line_reader.h). 0, -ENOENT: no lines, -EFBIG: more than is read, -EBADMSG, or
 * -ENOMEM. */
int lines__new(int fd, struct lines **ret_lines);
void lines__free(struct lines *l);

/*
 * Finds the places of the ELF address, innermost first. The last one is in the function whose code
 * lies there; each one before it is in a function inlined into the next, whose place is that of the
 * call. Returns how many places, 0: unknown, or -errno (-E2BIG: too many to search).
 */
int lines__find(struct lines *l, uint64_t address, struct line_place places[LINES_PLACES_MAX]);

#endif /* GP_INSPECT_ELF_LINES_H */
