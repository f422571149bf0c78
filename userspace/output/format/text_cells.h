/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Cells of the tables that people read. Text that a target chose counts in characters, as
 * base/escape.h shows them. Private to this room.
 */
#ifndef GP_OUTPUT_FORMAT_TEXT_CELLS_H
#define GP_OUTPUT_FORMAT_TEXT_CELLS_H

#include "base/buf.h"

#include <stddef.h>

#define TEXT_COLUMN_WIDTH 12

struct text_value {
	char text[32];
};

/* Appends so many spaces. */
void text_spaces(struct buf *out, size_t nr);

/* Appends text that a target chose on the right of `width` characters, and the gap after it. */
void text_name(struct buf *out, const char *name, size_t width);

/* Appends text that a target chose in at most `width` characters: of a longer one the beginning and
 * the end, with "..." between. */
void text_middle(struct buf *out, const char *text, size_t width);

/* Appends a value on the right of `width` bytes, and the gap after it. */
void text_cell(struct buf *out, const char *value, size_t width);

/* Appends a line below or above a cell, and the gap. */
void text_rule(struct buf *out, size_t width);

/* A time with its unit: "s", "ms" or "us"; NULL: what fits. */
struct text_value text_time(double us, const char *unit);

#endif /* GP_OUTPUT_FORMAT_TEXT_CELLS_H */
