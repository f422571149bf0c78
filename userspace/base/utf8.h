/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Texts in UTF-8.
 */
#ifndef GP_BASE_UTF8_H
#define GP_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* The character at the begin of a terminated text: its bytes, its code in *ret_code. 0: what stands
 * there is no well-formed UTF-8 (overlong forms, surrogates and codes above U+10FFFF are none). */
size_t utf8_character(const char *text, uint32_t *ret_code);

/* How much of a text that was cut after `bytes` is whole: without a character that the cut went
 * through. What is no UTF-8 is left as it is, but for a last byte that begins a character. */
size_t utf8_whole_bytes(const char *text, size_t bytes);

#endif /* GP_BASE_UTF8_H */
