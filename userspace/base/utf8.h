/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Decodes and cuts UTF-8.
 */
#ifndef GP_BASE_UTF8_H
#define GP_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Decodes the character at the beginning of a zero-terminated text: returns its bytes, and its code
 * in *ret_code. 0: it is not well-formed (overlong forms, surrogates and codes above U+10FFFF are
 * not). */
size_t utf8_character(const char *text, uint32_t *ret_code);

/* Returns how many bytes of a text that was cut after `bytes` form whole characters. Malformed
 * UTF-8 stays, except for a last byte that begins a character. */
size_t utf8_whole_bytes(const char *text, size_t bytes);

#endif /* GP_BASE_UTF8_H */
