/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * An interpreter's structures made by hand, laid out as each CPython from 3.8 to 3.14 does: for
 * the tests of the walk within a process. Addresses are this process's own.
 */
#ifndef GP_UNIT_PYTHON_IMAGE_H
#define GP_UNIT_PYTHON_IMAGE_H

#include "inspect/program/python.h"

#include <stddef.h>
#include <stdint.h>

#define IMAGE_FIRST_MINOR 8
#define IMAGE_LAST_MINOR  14
#define IMAGE_WORDS	  65536

struct image {
	struct target_python python;
	uint64_t first_interp; /* what python.walk.interpreters points to */
	uint64_t interp;       /* with `state` its only thread state */
	uint64_t state;
	size_t used; /* words */
	uint64_t words[IMAGE_WORDS];
};

/* One interpreter with one thread state, which is of the calling thread and runs nothing. Borrowed:
 * the next call makes it anew. */
struct image *image__get(unsigned int minor);

uint64_t image__interp(struct image *i);
/* A thread state of thread `self`, first in the list of its interpreter. */
uint64_t image__state(struct image *i, uint64_t interp, uint64_t self);
/* `seed` tells one from another. */
uint64_t image__code(struct image *i, const char *file, uint32_t seed);
/* A frame of `code` at instruction `lasti`, called by the frame `back` (0: none). */
uint64_t image__frame(struct image *i, uint64_t code, int32_t lasti, uint64_t back);
/* A frame of the interpreter's own; 3.12 and later. */
uint64_t image__shim(struct image *i, uint64_t back);
/* The thread runs `frame` now. */
void image__run(struct image *i, uint64_t state, uint64_t frame);

/* The word at an address of the image. */
uint64_t *image__word(uint64_t address);

#endif /* GP_UNIT_PYTHON_IMAGE_H */
