/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Source lines by address, and the functions that the compiler put into others there, from the
 * DWARF of an ELF file. The file is not trusted: what is followed in it has a bound, and so has its
 * size.
 */
#ifndef GP_INSPECT_ELF_LINES_H
#define GP_INSPECT_ELF_LINES_H

#include <stdint.h>

/* Functions that one address can be in, at most. */
#define LINES_PLACES_MAX 32

/* Texts are borrowed. */
struct line_place {
	const char *function; /* as the file has it (mangled); NULL: not known */
	const char *file;     /* its source; NULL: not known */
	uint32_t line;	      /* 0: not known */
};

struct lines;

/* Of the file of this descriptor, which must stay open as long. What it says of other files is
 * followed as it says: not for a process that may open files, or do any other harm, if the file is
 * not trusted (see inspect/elf/line_reader.h). 0, -ENOENT: it tells no lines, -EFBIG: it tells more
 * than is read, -EBADMSG, or -ENOMEM. */
int lines__new(int fd, struct lines **ret_lines);
void lines__free(struct lines *l);

/*
 * Where the ELF address is: innermost first. The last place is in the function whose code lies
 * there; each one before it is in a function that was put into the next one, whose place is that of
 * the call. How many places, 0: not known, or -errno (-E2BIG: more than are looked through).
 */
int lines__find(struct lines *l, uint64_t address, struct line_place places[LINES_PLACES_MAX]);

#endif /* GP_INSPECT_ELF_LINES_H */
