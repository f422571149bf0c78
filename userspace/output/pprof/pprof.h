/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The tables of a pprof profile: texts, functions, locations and mappings, each entered once.
 * Private to this room. Ids count from 1; 0 is "none".
 */
#ifndef GP_OUTPUT_PPROF_PPROF_H
#define GP_OUTPUT_PPROF_PPROF_H

#include "base/buf.h"
#include "recording/recording.h"

/* Mappings that stand for no file, in this order. */
enum pprof_mapping {
	PPROF_NONE = 0,
	PPROF_PYTHON = 1,
	PPROF_OPS = 2,
	PPROF_GPU = 3,
};

struct pprof_tables;

/* NULL: out of memory. */
struct pprof_tables *pprof_tables__new(void);
void pprof_tables__free(struct pprof_tables *p);

/* 0 or -ENOMEM, which sticks: then the tables are not whole. */
int pprof_tables__error(const struct pprof_tables *p);

/* Enters a text. Returns its position in the string table. */
int64_t pprof_tables__text(struct pprof_tables *p, const char *text);

/* Sets the recording that frames are from. */
void pprof_tables__begin(struct pprof_tables *p, const struct recording *rec);

/* Enters a frame of the recording. Returns its location. */
uint64_t pprof_tables__frame(struct pprof_tables *p, uint32_t frame);

/* Enters what has only a name: an op, a kernel, a mark. Returns its location. */
uint64_t pprof_tables__leaf(struct pprof_tables *p, enum pprof_mapping mapping, const char *name);

/* Appends a Profile message with these tables alone. 0 or -ENOMEM. */
int pprof_tables__pack(struct pprof_tables *p, struct buf *out);

#endif /* GP_OUTPUT_PPROF_PPROF_H */
