/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Writes pickles. A text is written once, and then referred to by its place in the memo.
 */
#include "output/memory/pickle.h"

#include <errno.h>
#include <string.h>

#include "base/banned.h"
#include "base/cleanup.h"

#define BLOCK_BYTES (1 << 20)

enum opcode {
	OP_PROTO = 0x80,
	OP_STOP = '.',
	OP_MARK = '(',
	OP_EMPTY_LIST = ']',
	OP_APPENDS = 'e',
	OP_EMPTY_DICT = '}',
	OP_SETITEMS = 'u',
	OP_BININT1 = 'K',
	OP_BININT2 = 'M',
	OP_BININT = 'J',
	OP_LONG1 = 0x8a,
	OP_SHORT_BINUNICODE = 0x8c,
	OP_BINUNICODE = 'X',
	OP_MEMOIZE = 0x94,
	OP_BINGET = 'h',
	OP_LONG_BINGET = 'j',
};

static void put(struct pickle *p, int byte)
{
	buf__char(&p->out, (char)byte);
}

/* Little endian. */
static void put_number(struct pickle *p, int64_t n, int bytes)
{
	for (int i = 0; i < bytes; i++)
		put(p, (int)((uint64_t)n >> (8 * i) & 0xff));
}

static void drain(struct pickle *p, size_t least)
{
	p->err = p->err ? p->err : sink__drain(p->sink, &p->out, least);
}

void pickle__begin(struct pickle *p, struct sink *s)
{
	*p = (struct pickle){.sink = s};
	put(p, OP_PROTO);
	put(p, 4);
}

int pickle__end(struct pickle *p)
{
	put(p, OP_STOP);
	drain(p, 0);
	return p->err;
}

void pickle__done(struct pickle *p)
{
	buf__done(&p->out);
	hash__done(&p->text_of);
	vec_done(&p->texts);
}

static void put_int(struct pickle *p, int64_t n)
{
	int bytes = 8;

	if (n >= 0 && n < 256) {
		put(p, OP_BININT1);
		put_number(p, n, 1);
	} else if (n >= 0 && n < 65536) {
		put(p, OP_BININT2);
		put_number(p, n, 2);
	} else if (n >= INT32_MIN && n <= INT32_MAX) {
		put(p, OP_BININT);
		put_number(p, n, 4);
	} else {
		/* As few bytes as hold it and its sign. */
		while (bytes > 1 && n >> (8 * (bytes - 1) - 1) == (n < 0 ? -1 : 0))
			bytes--;
		put(p, OP_LONG1);
		put(p, bytes);
		put_number(p, n, bytes);
	}
	drain(p, BLOCK_BYTES);
}

uint32_t pickle__remember(struct pickle *p)
{
	put(p, OP_MEMOIZE);
	if (p->texts.nr >= UINT32_MAX || vec_push(&p->texts, NULL))
		p->err = p->err ? p->err : -ENOMEM;
	return (uint32_t)p->texts.nr - 1;
}

void pickle__again(struct pickle *p, uint32_t place)
{
	put(p, place < 256 ? OP_BINGET : OP_LONG_BINGET);
	put_number(p, place, place < 256 ? 1 : 4);
}

static void put_text(struct pickle *p, const char *text)
{
	CLEANUP(buf__done) struct buf clean = {0};

	buf__line(&clean, text);
	if (buf__error(&clean) || clean.nr > INT32_MAX) {
		p->err = p->err ? p->err : -ENOMEM;
		return;
	}
	put(p, clean.nr < 256 ? OP_SHORT_BINUNICODE : OP_BINUNICODE);
	put_number(p, (int64_t)clean.nr, clean.nr < 256 ? 1 : 4);
	if (clean.nr)
		buf__add(&p->out, clean.bytes, clean.nr);
}

void pickle__text(struct pickle *p, const char *text)
{
	uint64_t key = hash_bytes(text, strlen(text));
	const uint64_t *known = hash__find(&p->text_of, key);
	uint32_t place;

	if (known && !strcmp(p->texts.items[*known], text)) {
		pickle__again(p, (uint32_t)*known);
		return;
	}
	put_text(p, text);
	place = pickle__remember(p);
	if (!p->err) {
		p->texts.items[place] = text;
		p->err = hash__set(&p->text_of, key, place);
	}
	drain(p, BLOCK_BYTES);
}

void pickle__list(struct pickle *p)
{
	put(p, OP_EMPTY_LIST);
	put(p, OP_MARK);
}

void pickle__list_end(struct pickle *p)
{
	put(p, OP_APPENDS);
}

void pickle__dict(struct pickle *p)
{
	put(p, OP_EMPTY_DICT);
	put(p, OP_MARK);
}

void pickle__dict_end(struct pickle *p)
{
	put(p, OP_SETITEMS);
}

void pickle__key_int(struct pickle *p, const char *key, int64_t n)
{
	pickle__text(p, key);
	put_int(p, n);
}

void pickle__key_text(struct pickle *p, const char *key, const char *text)
{
	pickle__text(p, key);
	pickle__text(p, text);
}
