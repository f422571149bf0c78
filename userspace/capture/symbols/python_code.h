/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The code objects of one process: file, function and lines, read from its memory when a frame
 * first names them, while the process still has them. Memory that holds another code object by now
 * is noticed by its checksum, and such a frame has no place rather than a wrong one.
 */
#ifndef GP_CAPTURE_SYMBOLS_PYTHON_CODE_H
#define GP_CAPTURE_SYMBOLS_PYTHON_CODE_H

#include "base/hash.h"
#include "inspect/program/python.h"
#include "wire.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct python_codes;

/* NULL when out of memory. */
struct python_codes *python_codes__new(const struct target_python *python);
void python_codes__free(struct python_codes *c);

/* The interpreter that they are of. Borrowed. */
const struct target_python *python_codes__python(const struct python_codes *c);

struct python_place {
	uint32_t code;	      /* number of the code object in this process */
	const char *file;     /* borrowed */
	const char *function; /* borrowed */
	uint32_t first_line;  /* of the function, 0: not known */
	uint32_t line;
};

/* Where the frame is. 0; -ENOENT if its code is gone or cannot be believed; -ENOSPC if there are
 * more code objects than are kept; -ENOMEM. */
int python_codes__place(struct python_codes *c, const struct gp_stack_frame *frame,
			struct python_place *ret_place);

/* The owner's, which goes with them: what it knows of places in this process. */
struct hash *python_codes__frames(struct python_codes *c);

/* The line of an instruction by a line table of Python 3.minor; `lasti` as struct gp_stack_frame
 * has it. 0: the table does not say. */
uint32_t python_line(unsigned int minor, const uint8_t *table, size_t bytes, int32_t first_line,
		     int32_t lasti);

#endif /* GP_CAPTURE_SYMBOLS_PYTHON_CODE_H */
