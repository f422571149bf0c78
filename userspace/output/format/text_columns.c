/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Fits columns into a width.
 */
#include "output/format/text_columns.h"

#define NARROWEST 8

static size_t least_of(const struct text_column *c)
{
	return c->least && c->least < c->width ? c->least : c->width;
}

/* The width of the table with every column cut as far as it can be. */
static size_t least_width(const struct text_column *columns, size_t nr)
{
	size_t width = 0;

	for (size_t i = 0; i < nr; i++)
		if (!columns[i].left_out)
			width += least_of(&columns[i]) + (width ? TEXT_COLUMN_GAP : 0);
	return width;
}

/* Whether there was a column to leave out. */
static bool leave_out_highest(struct text_column *columns, size_t nr)
{
	unsigned int highest = 0;

	for (size_t i = 0; i < nr; i++)
		if (!columns[i].left_out && columns[i].rank > highest)
			highest = columns[i].rank;
	for (size_t i = 0; i < nr && highest; i++)
		columns[i].left_out |= columns[i].rank == highest;
	return highest > 0;
}

static void share_out(struct text_column *columns, size_t nr, size_t spare)
{
	for (size_t i = 0; i < nr; i++) {
		struct text_column *c = &columns[i];
		size_t least = least_of(c), wanted = c->width - least;
		size_t got = wanted < spare ? wanted : spare;

		if (c->left_out)
			continue;
		c->width = least + got;
		spare -= got;
	}
}

static struct text_column *widest(struct text_column *columns, size_t nr)
{
	struct text_column *widest = NULL;

	for (size_t i = 0; i < nr; i++) {
		struct text_column *c = &columns[i];

		if (!c->left_out && c->least && c->width > NARROWEST &&
		    (!widest || c->width > widest->width))
			widest = c;
	}
	return widest;
}

void text_columns_fit(struct text_column *columns, size_t nr, size_t width)
{
	size_t least = least_width(columns, nr);

	while (least > width && leave_out_highest(columns, nr))
		least = least_width(columns, nr);
	share_out(columns, nr, least < width ? width - least : 0);
	for (; least > width; least--) {
		struct text_column *c = widest(columns, nr);

		if (!c)
			return;
		c->width--;
	}
}
