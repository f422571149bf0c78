/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Texts in UTF-8.
 */
#ifndef GP_BASE_UTF8_H
#define GP_BASE_UTF8_H

#include <stddef.h>

/* How much of a text that was cut after `bytes` is whole: without a character that the cut went
 * through. What is no UTF-8 is left as it is, but for a last byte that begins a character. */
size_t utf8_whole_bytes(const char *text, size_t bytes);

#endif /* GP_BASE_UTF8_H */
