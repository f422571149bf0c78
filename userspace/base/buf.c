/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A growable byte buffer. Numbers are formatted by hand: a trace of a million events has ten
 * million of them.
 */
#include "base/buf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool room(struct buf *b, size_t bytes)
{
	size_t want = b->cap ? b->cap : 256;
	char *grown;

	if (b->err)
		return false;
	if (bytes < b->cap - b->nr)
		return true;
	while (want - b->nr <= bytes) {
		if (want > SIZE_MAX / 2) {
			b->err = -ENOMEM;
			return false;
		}
		want *= 2;
	}
	grown = realloc(b->bytes, want);
	if (!grown) {
		b->err = -ENOMEM;
		return false;
	}
	b->bytes = grown;
	b->cap = want;
	return true;
}

void buf__add(struct buf *b, const void *data, size_t bytes)
{
	if (!room(b, bytes))
		return;
	if (bytes)
		memcpy(b->bytes + b->nr, data, bytes);
	b->nr += bytes;
	b->bytes[b->nr] = '\0';
}

void buf__str(struct buf *b, const char *text)
{
	buf__add(b, text, strlen(text));
}

void buf__char(struct buf *b, char c)
{
	buf__add(b, &c, 1);
}

void buf__printf(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0 || !room(b, (size_t)n))
		return;
	va_start(ap, fmt);
	(void)vsnprintf(b->bytes + b->nr, (size_t)n + 1, fmt, ap);
	va_end(ap);
	b->nr += (size_t)n;
}

void buf__u64(struct buf *b, uint64_t n)
{
	char digits[20];
	size_t at = sizeof(digits);

	do {
		digits[--at] = (char)('0' + n % 10);
		n /= 10;
	} while (n);
	buf__add(b, digits + at, sizeof(digits) - at);
}

void buf__i64(struct buf *b, int64_t n)
{
	if (n < 0)
		buf__char(b, '-');
	buf__u64(b, n < 0 ? -(uint64_t)n : (uint64_t)n);
}

void buf__us(struct buf *b, int64_t ns)
{
	uint64_t n = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
	uint64_t rest = n % 1000;
	char tail[4] = {'.', (char)('0' + rest / 100), (char)('0' + rest / 10 % 10),
			(char)('0' + rest % 10)};

	if (ns < 0)
		buf__char(b, '-');
	buf__u64(b, n / 1000);
	buf__add(b, tail, sizeof(tail));
}

/* Length of the well-formed UTF-8 sequence at p, 0 if there is none. p is terminated. */
static size_t utf8_bytes(const unsigned char *p)
{
	if (p[0] < 0x80)
		return 1;
	if (p[0] >= 0xc2 && p[0] <= 0xdf)
		return (p[1] & 0xc0) == 0x80 ? 2 : 0;
	if (p[0] >= 0xe0 && p[0] <= 0xef) {
		if ((p[1] & 0xc0) != 0x80 || (p[2] & 0xc0) != 0x80)
			return 0;
		if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f))
			return 0;
		return 3;
	}
	if (p[0] >= 0xf0 && p[0] <= 0xf4) {
		if ((p[1] & 0xc0) != 0x80 || (p[2] & 0xc0) != 0x80 || (p[3] & 0xc0) != 0x80)
			return 0;
		if ((p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
			return 0;
		return 4;
	}
	return 0;
}

static bool is_plain(unsigned char c)
{
	return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

static size_t json_special(struct buf *b, const unsigned char *p)
{
	size_t nr = utf8_bytes(p);

	if (*p == '"' || *p == '\\') {
		buf__char(b, '\\');
		buf__char(b, (char)*p);
		return 1;
	}
	if (nr == 1) {
		buf__printf(b, "\\u%04x", *p);
		return 1;
	}
	if (!nr) {
		buf__str(b, "\\ufffd");
		return 1;
	}
	buf__add(b, p, nr);
	return nr;
}

void buf__json(struct buf *b, const char *text)
{
	const unsigned char *p = (const unsigned char *)text;

	buf__char(b, '"');
	while (*p) {
		const unsigned char *from = p;

		while (is_plain(*p))
			p++;
		buf__add(b, from, (size_t)(p - from));
		if (*p)
			p += json_special(b, p);
	}
	buf__char(b, '"');
}

void buf__line(struct buf *b, const char *text)
{
	const unsigned char *p = (const unsigned char *)text;

	while (*p) {
		size_t nr = utf8_bytes(p);

		if (!nr)
			buf__str(b, "\xef\xbf\xbd");
		else if (*p < 0x20 || *p == 0x7f)
			buf__char(b, '?');
		else
			buf__add(b, p, nr);
		p += nr ? nr : 1;
	}
}

void buf__clear(struct buf *b)
{
	b->nr = 0;
	if (b->bytes)
		b->bytes[0] = '\0';
}

int buf__error(const struct buf *b)
{
	return b->err;
}

void buf__done(struct buf *b)
{
	free(b->bytes);
	*b = (struct buf){0};
}
