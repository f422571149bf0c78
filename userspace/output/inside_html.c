/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * JSON as it may stand between <script> and </script>.
 */
#include "output/inside_html.h"

#include <string.h>

#include "base/banned.h"

void inside_html(struct buf *to, const struct buf *from)
{
	const char *p = from->bytes, *end = from->bytes + from->nr;

	while (p < end) {
		const char *special = memchr(p, '<', (size_t)(end - p));

		if (!special)
			special = end;
		buf__add(to, p, (size_t)(special - p));
		if (special < end)
			buf__str(to, "\\u003c");
		p = special + (special < end);
	}
}
