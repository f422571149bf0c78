/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The cells of the tables that people read. Text that a traced process chose is as long as it is
 * shown: in characters, as base/escape.h escapes it. Private to this room.
 */
#ifndef GP_OUTPUT_FORMAT_TEXT_CELLS_H
#define GP_OUTPUT_FORMAT_TEXT_CELLS_H

#include "base/buf.h"

#include <stddef.h>

#define TEXT_COLUMN_WIDTH 12

struct text_value {
	char text[32];
};

/* Appends `nr` spaces. */
void text_spaces(struct buf *out, size_t nr);

/* Appends text that a process chose in at most `width` characters: of a longer one the beginning
 * and the end, with "..." between. */
void text_middle(struct buf *out, const char *text, size_t width);

/* Appends text of gpuprof's own as lines of at most `width` characters that break at spaces; all
 * but the first are indented. */
void text_wrapped(struct buf *out, const char *text, size_t width);

/* A time with its unit, one of "s", "ms" and "us"; with NULL the one that suits it. */
struct text_value text_time(double us, const char *unit);

#endif /* GP_OUTPUT_FORMAT_TEXT_CELLS_H */
