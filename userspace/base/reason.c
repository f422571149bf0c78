/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Why something failed, in words. Nothing here allocates, so it works when memory is out.
 */
#include "base/reason.h"

#include <stdarg.h>
#include <stdio.h>

int reason_set(struct reason *r, int err, const char *fmt, ...)
{
	va_list ap;

	if (!r)
		return err;
	va_start(ap, fmt);
	(void)vsnprintf(r->text, sizeof(r->text), fmt, ap);
	va_end(ap);
	return err;
}
