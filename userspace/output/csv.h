/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Fields of CSV, as RFC 4180 has them. Private to this room.
 */
#ifndef GP_OUTPUT_CSV_H
#define GP_OUTPUT_CSV_H

#include "base/buf.h"

/* Appends a text, in quotes where it needs them. */
void csv_text(struct buf *out, const char *text);

#endif /* GP_OUTPUT_CSV_H */
