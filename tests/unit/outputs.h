/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Tables of timelines and what the writers of output/ make of them, for tests. Whatever fails,
 * fails the test that runs.
 */
#ifndef GP_UNIT_OUTPUTS_H
#define GP_UNIT_OUTPUTS_H

#include "output/format/output.h"

/* table__free() it. */
struct table *table_of(const struct timeline *t, struct table_options options);

struct sink *memory_sink(void);

/* Finishes and frees a memory sink: what went into it, terminated, with how many bytes (may be
 * NULL). The caller frees. */
char *sink_text(struct sink *s, size_t *ret_bytes);

/* How often `what` stands in the text. */
unsigned int count_of(const char *text, const char *what);

#endif /* GP_UNIT_OUTPUTS_H */
