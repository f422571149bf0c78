/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * How the columns of a printed table share the width of a terminal. Pure arithmetic: it sees widths
 * and ranks, no values. Private to this room.
 */
#ifndef GP_OUTPUT_FORMAT_TEXT_COLUMNS_H
#define GP_OUTPUT_FORMAT_TEXT_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>

#define TEXT_COLUMN_GAP 2

struct text_column {
	size_t width;	   /* in characters: what its cells need, after fitting what they get */
	size_t least;	   /* its cells can be cut to this many characters; 0: never cut */
	unsigned int rank; /* the highest rank is left out first; 0: never left out */
	bool left_out;
};

/*
 * Makes the columns and the gaps between them fit `width` characters. Columns that can be cut give
 * way first, each down to its `least`; then columns are left out, all of the highest rank at a
 * time; what room remains goes back to the columns that were cut, from the left. If that is not
 * enough, the widest of those that can be cut shrink further, down to a few characters: a terminal
 * can be too narrow even for that.
 */
void text_columns_fit(struct text_column *columns, size_t nr, size_t width);

#endif /* GP_OUTPUT_FORMAT_TEXT_COLUMNS_H */
