/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

#include "base/utf8.h"

/* The length of a character that begins with this byte, in bytes; 0: none begins so. */
static size_t bytes_from(unsigned char first)
{
	if (first < 0x80)
		return 1;
	if (first < 0xc2 || first > 0xf4)
		return 0;
	return first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

size_t utf8_character(const char *text, uint32_t *ret_code)
{
	/* The least code of each length: below it the form is overlong. */
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	const unsigned char *p = (const unsigned char *)text;
	size_t nr = bytes_from(*p);
	uint32_t code = nr < 2 ? *p : *p & (0x7fU >> nr);

	for (size_t i = 1; i < nr; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (p[i] & 0x3fU);
	}
	if (!nr || code < least[nr] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
		return 0;
	*ret_code = code;
	return nr;
}

size_t utf8_whole_bytes(const char *text, size_t bytes)
{
	size_t at = bytes, need = 1;
	unsigned char first;

	while (at && bytes - at < 3 && (text[at - 1] & 0xc0) == 0x80)
		at--;
	first = at ? (unsigned char)text[at - 1] : 0;
	if (first >= 0xc0)
		need = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
	return need > bytes - at + 1 ? at - 1 : bytes;
}
