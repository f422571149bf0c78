/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

#include "cli/view/metadata.h"

#include "base/cleanup.h"
#include "base/escape.h"
#include "capture/capture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool metadata_is_sane(const char *text)
{
	if (!text_is_plain(text))
		return false;
	for (;;) {
		size_t nr = strcspn(text, ",");
		const char *equals = memchr(text, '=', nr);

		if (!equals || equals == text)
			return false;
		if (!text[nr])
			return true;
		text += nr + 1;
	}
}

int metadata_add(struct capture *c, const char *text, struct reason *why)
{
	CLEANUP(cleanup_free) char *copy = text ? strdup(text) : NULL;
	char *rest = copy, *part;
	int err = text && !copy ? reason_set(why, -ENOMEM, "out of memory") : 0;

	while (rest && !err) {
		part = strsep(&rest, ",");
		part[strcspn(part, "=")] = '\0';
		err = capture__describe(c, part, part + strlen(part) + 1, why);
	}
	return err;
}
