/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The columns of the printed table, one row of a list for each: its title, its value, how its cells
 * are set, and when it is left out of a table that has to fit a terminal. Private to this room.
 */
#ifndef GP_OUTPUT_SUMMARY_TABLE_COLUMNS_H
#define GP_OUTPUT_SUMMARY_TABLE_COLUMNS_H

#include "base/buf.h"
#include "timeline/analysis/table.h"

#define TABLE_COLUMNS_MAX 28

enum table_style {
	TABLE_NUMBER, /* on the right, never cut */
	TABLE_NAME,   /* on the right; the row's and the overload's */
	TABLE_SHAPES, /* on the right */
	TABLE_SOURCE, /* on the left; one line for each frame */
};

struct table_column;

/* What tells whether a column is there, and its value in a row. `unit` is that of text_time(). */
typedef bool (*table_column_there)(const struct table *table);
typedef void (*table_column_value)(struct buf *out, const struct table *table,
				   const struct table_row *r, const struct table_column *c,
				   const char *unit);

struct table_column {
	const char *title; /* NULL: table_column_title() makes it */
	const char *sort;  /* the key that sorts by it; NULL: none */
	enum table_style style;
	unsigned int rank; /* see struct text_column */
	table_column_there is_there;
	table_column_value value;
	size_t at; /* what value() reads: an offset in struct table_row, or an enum estimate_of */
};

/* The columns that a table has, in order. Returns how many. They are never freed. */
size_t table_columns_of(const struct table *table,
			const struct table_column *ret[TABLE_COLUMNS_MAX]);

/* Appends a column's title. */
void table_column_title(struct buf *out, const struct table *table, const struct table_column *c);

/* Appends what a row's source column shows in its line `i`, from 0; nothing after the last frame.
 */
void table_column_frame(struct buf *out, const struct table *table, const struct table_row *r,
			size_t i);

#endif /* GP_OUTPUT_SUMMARY_TABLE_COLUMNS_H */
