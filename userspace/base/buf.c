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

char *buf__grow(struct buf *b, size_t bytes)
{
	size_t want = b->cap ? b->cap : 256;
	char *grown;

	if (b->err)
		return NULL;
	if (bytes < b->cap - b->nr)
		return b->bytes + b->nr;
	while (want - b->nr <= bytes) {
		if (want > SIZE_MAX / 2) {
			b->err = -ENOMEM;
			return NULL;
		}
		want *= 2;
	}
	grown = realloc(b->bytes, want);
	if (!grown) {
		b->err = -ENOMEM;
		return NULL;
	}
	b->bytes = grown;
	b->cap = want;
	return b->bytes + b->nr;
}

void buf__add(struct buf *b, const void *data, size_t bytes)
{
	char *at = buf__room(b, bytes);

	if (!at)
		return;
	if (bytes)
		memcpy(at, data, bytes);
	buf__advance(b, at + bytes);
}

void buf__str(struct buf *b, const char *text)
{
	buf__add(b, text, strlen(text));
}

void buf__char(struct buf *b, char c)
{
	buf__add(b, &c, 1);
}

void buf__vprintf(struct buf *b, const char *fmt, va_list ap)
{
	va_list again;
	char *at;
	int n;

	va_copy(again, ap);
	n = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	at = n < 0 ? NULL : buf__room(b, (size_t)n);
	if (!at)
		return;
	(void)vsnprintf(at, (size_t)n + 1, fmt, ap);
	buf__advance(b, at + n);
}

void buf__printf(struct buf *b, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	buf__vprintf(b, fmt, ap);
	va_end(ap);
}

static unsigned int digits_of(uint64_t n)
{
	unsigned int nr = 1;

	for (; n >= 10000; n /= 10000)
		nr += 4;
	return nr + (n >= 10) + (n >= 100) + (n >= 1000);
}

/* Two digits at a time, from the last on. */
char *put_u64(char *at, uint64_t n)
{
	static const char pairs[] = "00010203040506070809101112131415161718192021222324"
				    "25262728293031323334353637383940414243444546474849"
				    "50515253545556575859606162636465666768697071727374"
				    "75767778798081828384858687888990919293949596979899";
	char *end = at + digits_of(n), *to = end;

	for (; n >= 100; n /= 100) {
		to -= 2;
		memcpy(to, pairs + n % 100 * 2, 2);
	}
	if (n >= 10)
		memcpy(at, pairs + n * 2, 2);
	else
		*at = (char)('0' + n);
	return end;
}

char *put_i64(char *at, int64_t n)
{
	if (n >= 0)
		return put_u64(at, (uint64_t)n);
	*at = '-';
	return put_u64(at + 1, -(uint64_t)n);
}

char *put_us(char *at, int64_t ns)
{
	uint64_t n = ns < 0 ? -(uint64_t)ns : (uint64_t)ns, rest = n % 1000;

	if (ns < 0)
		*at++ = '-';
	at = put_u64(at, n / 1000);
	*at++ = '.';
	*at++ = (char)('0' + rest / 100);
	*at++ = (char)('0' + rest / 10 % 10);
	*at++ = (char)('0' + rest % 10);
	return at;
}

void buf__u64(struct buf *b, uint64_t n)
{
	char *at = buf__room(b, BUF_NUMBER_BYTES);

	if (at)
		buf__advance(b, put_u64(at, n));
}

void buf__i64(struct buf *b, int64_t n)
{
	char *at = buf__room(b, BUF_NUMBER_BYTES);

	if (at)
		buf__advance(b, put_i64(at, n));
}

void buf__us(struct buf *b, int64_t ns)
{
	char *at = buf__room(b, BUF_NUMBER_BYTES);

	if (at)
		buf__advance(b, put_us(at, ns));
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
