/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A growable byte buffer for text and binary output. An allocation failure is remembered: later
 * calls do nothing and buf__error() says so, so writers need one check at the end.
 */
#ifndef GP_BASE_BUF_H
#define GP_BASE_BUF_H

#include "base/escape.h" /* buf__json(), buf__line() and others: for text that a target chose */

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf {
	char *bytes; /* terminated by a zero that nr does not count, once anything was added */
	size_t nr;
	size_t cap;
	int err;
};

/* Append bytes, a text, one character, or what printf() would write. */
void buf__add(struct buf *b, const void *data, size_t bytes);
void buf__str(struct buf *b, const char *text);
void buf__char(struct buf *b, char c);
void buf__printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf__vprintf(struct buf *b, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));
/* Makes room for so many bytes and a zero, without adding any. Returns the end of what was added,
 * where they may be written, or NULL after an allocation failure. */
char *buf__grow(struct buf *b, size_t bytes);
static inline char *buf__room(struct buf *b, size_t bytes)
{
	return !b->err && bytes < b->cap - b->nr ? b->bytes + b->nr : buf__grow(b, bytes);
}
/* Adds what was written into that room up to `end`. */
static inline void buf__advance(struct buf *b, char *end)
{
	*end = '\0';
	b->nr = (size_t)(end - b->bytes);
}
/* Decimal numbers, much faster than printf. put_*() write them at `at`, which has room for
 * BUF_NUMBER_BYTES, and return their end. */
#define BUF_NUMBER_BYTES 25
char *put_u64(char *at, uint64_t n);
char *put_i64(char *at, int64_t n);
char *put_us(char *at, int64_t ns);

void buf__u64(struct buf *b, uint64_t n);
void buf__i64(struct buf *b, int64_t n);
/* ns as microseconds with exactly three decimals, as Kineto writes times: 1234567 -> 1234.567. */
void buf__us(struct buf *b, int64_t ns);
/* Forgets the content, keeps the memory. */
void buf__clear(struct buf *b);
/* 0 or -ENOMEM. */
int buf__error(const struct buf *b);
void buf__done(struct buf *b);

#endif /* GP_BASE_BUF_H */
