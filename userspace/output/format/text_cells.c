/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Writes the cells of printed tables.
 */
#include "output/format/text_cells.h"

#include <stdio.h>
#include <string.h>

#include "base/banned.h"

void text_spaces(struct buf *out, size_t nr)
{
	while (nr-- > 0)
		buf__char(out, ' ');
}

void text_middle(struct buf *out, const char *text, size_t width)
{
	size_t nr = line_characters(text), dots = width < 5 ? 0 : 3;
	size_t end = (width - dots) / 2, begin = width - dots - end;

	if (nr <= width) {
		buf__line(out, text);
		return;
	}
	buf__line_part(out, text, begin);
	buf__add(out, "...", dots);
	buf__line(out, line_behind(text, nr - end));
}

void text_wrapped(struct buf *out, const char *text, size_t width)
{
	size_t at = 0;

	while (*text) {
		size_t nr = strcspn(text, " ");

		if (at && at + 1 + nr > width) {
			buf__str(out, "\n  ");
			at = 2;
		} else if (at) {
			buf__char(out, ' ');
			at++;
		}
		buf__add(out, text, nr);
		at += nr;
		text += nr + strspn(text + nr, " ");
	}
	buf__char(out, '\n');
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
