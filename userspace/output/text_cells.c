/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Cells of tables as text.
 */
#include "output/text_cells.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/banned.h"

size_t text_character(const char *p)
{
	const unsigned char *c = (const unsigned char *)p;
	size_t nr = c[0] < 0xc2 ? 1 : c[0] < 0xe0 ? 2 : c[0] < 0xf0 ? 3 : c[0] < 0xf5 ? 4 : 1;

	for (size_t i = 1; i < nr; i++)
		if ((c[i] & 0xc0) != 0x80)
			return 1;
	return nr;
}

/* A terminal shall not obey a name. */
static bool is_control(const char *p, size_t bytes)
{
	unsigned char c = (unsigned char)p[0];

	return (bytes == 1 && (c < 0x20 || c >= 0x7f)) ||
	       (bytes == 2 && c == 0xc2 && (unsigned char)p[1] < 0xa0);
}

size_t text_characters(const char *text)
{
	size_t nr = 0;

	for (; *text; text += text_character(text))
		nr++;
	return nr;
}

void text_spaces(struct buf *out, size_t nr)
{
	while (nr-- > 0)
		buf__char(out, ' ');
}

void text_add(struct buf *out, const char *text, size_t limit)
{
	for (size_t nr = 0; *text && nr < limit; nr++) {
		size_t bytes = text_character(text);

		if (is_control(text, bytes))
			buf__char(out, '?');
		else
			buf__add(out, text, bytes);
		text += bytes;
	}
}

void text_cell(struct buf *out, const char *value, size_t width)
{
	size_t nr = strlen(value);

	if (nr < width)
		text_spaces(out, width - nr);
	buf__str(out, value);
	buf__str(out, "  ");
}

void text_rule(struct buf *out, size_t width)
{
	while (width-- > 0)
		buf__char(out, '-');
	buf__str(out, "  ");
}

struct text_value text_time(double us, const char *unit)
{
	struct text_value v;

	if (!unit)
		unit = us >= 1000.0 * 1000.0 ? "s" : us >= 1000.0 ? "ms" : "us";
	if (!strcmp(unit, "s"))
		us /= 1000.0 * 1000.0;
	else if (!strcmp(unit, "ms"))
		us /= 1000.0;
	(void)snprintf(v.text, sizeof(v.text), "%.3f%s", us, unit);
	return v;
}
