/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * JSON inside a page. Private to this room.
 */
#ifndef GP_OUTPUT_INSIDE_HTML_H
#define GP_OUTPUT_INSIDE_HTML_H

#include "base/buf.h"

/* Appends the JSON text `from` with each '<' as \u003c, so that no name in it can end the <script>
 * element around it. */
void inside_html(struct buf *to, const struct buf *from);

#endif /* GP_OUTPUT_INSIDE_HTML_H */
