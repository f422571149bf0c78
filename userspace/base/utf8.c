/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

#include "base/utf8.h"

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
