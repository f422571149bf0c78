/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The lines above and below the printed table of a capture within a budget: its columns 'est' are
 * of the whole, all others of the windows alone. A table without estimates gets no lines. Private
 * to this room.
 */
#ifndef GP_OUTPUT_SUMMARY_TABLE_ESTIMATES_H
#define GP_OUTPUT_SUMMARY_TABLE_ESTIMATES_H

#include "base/buf.h"
#include "timeline/analysis/table.h"

/* The line that says what the estimates are from, and the one of all CPU time. */
void table_estimate_origin(struct buf *out, const struct table *table);
void table_estimate_total(struct buf *out, const struct table *table, const char *unit);

#endif /* GP_OUTPUT_SUMMARY_TABLE_ESTIMATES_H */
