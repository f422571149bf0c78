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
