/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Names that a hostile target may choose, and recordings in which everything that has a name has
 * each of them. Any failure aborts.
 */
#ifndef GP_UNIT_NASTY_NAMES_H
#define GP_UNIT_NASTY_NAMES_H

#include <stdbool.h>
#include <stddef.h>

struct nasty_name {
	const char *text;
	const char *line; /* what stands for it on a line, by the table of base/escape.h */
	bool is_utf8;	  /* formats with escapes give it back as it was */
};

/* The n-th name; NULL: there are no more. The same pointers at every call. */
const struct nasty_name *nasty_name(size_t n);

/* Writes a recording of one process, or of two ranks of a job. Operators, annotations, kernels,
 * calls, modules, files, functions, libraries, GPUs, metadata, counters of losses have all names,
 * threads the first 15 bytes of each; `sampled`: what its threads were found doing. */
enum nasty_recording { NASTY_TRACE, NASTY_SAMPLES, NASTY_RANKS };
void nasty_write(const char *path, enum nasty_recording which);

#endif /* GP_UNIT_NASTY_NAMES_H */
