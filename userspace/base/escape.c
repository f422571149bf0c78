/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * See escape.h. All formats take a text apart the same way, character by character; most text is
 * ASCII that means nothing, and is taken in runs where that is many bytes.
 */
#include "base/escape.h"

#include <stdint.h>
#include <string.h>

#include "base/banned.h"
#include "base/buf.h"
#include "base/utf8.h"

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

static bool acts(uint32_t code)
{
	static const struct {
		uint32_t first, last;
	} ranges[] = {
		{0x0000, 0x001f}, {0x007f, 0x009f}, {0x061c, 0x061c}, {0x200e, 0x200f},
		{0x2028, 0x202e}, {0x2066, 0x206f}, {0xfdd0, 0xfdef}, {0xfff9, 0xfffb},
	};

	for (size_t i = 0; i < sizeof(ranges) / sizeof(*ranges); i++)
		if (code >= ranges[i].first && code <= ranges[i].last)
			return true;
	return (code & 0xfffe) == 0xfffe;
}

/* One character of a text. */
struct piece {
	const char *shown; /* on a line */
	size_t shown_bytes;
	size_t bytes; /* of the text */
	uint32_t code;
	bool acts, broken; /* broken: it is none */
};

static struct piece piece_at(const char *text)
{
	struct piece p = {.shown = text};

	p.shown_bytes = p.bytes = utf8_character(text, &p.code);
	if (!p.bytes) {
		p.broken = true;
		p.bytes = 1;
		p.code = 0xfffd;
		p.shown = REPLACEMENT;
		p.shown_bytes = sizeof(REPLACEMENT) - 1;
	} else if (acts(p.code)) {
		p.acts = true;
		p.shown = "?";
		p.shown_bytes = 1;
	}
	return p;
}

bool text_is_plain(const char *text)
{
	while (*text) {
		struct piece p = piece_at(text);

		if (p.acts || p.broken)
			return false;
		text += p.bytes;
	}
	return true;
}

/* ---- lines ---- */

/* Bytes from here on that are printable ASCII. */
static size_t plain_run(const char *text)
{
	size_t nr = 0;

	while (text[nr] >= 0x20 && text[nr] < 0x7f)
		nr++;
	return nr;
}

void buf__line(struct buf *b, const char *text)
{
	while (*text) {
		size_t run = plain_run(text);
		struct piece p;

		buf__add(b, text, run);
		text += run;
		if (!*text)
			return;
		p = piece_at(text);
		buf__add(b, p.shown, p.shown_bytes);
		text += p.bytes;
	}
}

void buf__line_part(struct buf *b, const char *text, size_t characters)
{
	while (*text && characters-- > 0) {
		struct piece p = piece_at(text);

		buf__add(b, p.shown, p.shown_bytes);
		text += p.bytes;
	}
}

size_t line_into(char *to, size_t bytes, const char *text)
{
	size_t nr = 0;

	while (*text) {
		struct piece p = piece_at(text);

		if (p.shown_bytes >= bytes - nr)
			break;
		memcpy(to + nr, p.shown, p.shown_bytes);
		nr += p.shown_bytes;
		text += p.bytes;
	}
	to[nr] = '\0';
	return nr;
}

const char *line_behind(const char *text, size_t characters)
{
	while (*text && characters-- > 0)
		text += piece_at(text).bytes;
	return text;
}

size_t line_characters(const char *text)
{
	size_t nr = 0;

	for (; *text; nr++)
		text += piece_at(text).bytes;
	return nr;
}

/* ---- lines with a syntax ---- */

/* As a line, but where `put` has its own form of a character. */
static void add_all(struct buf *b, const char *text, bool (*put)(struct buf *b, uint32_t code))
{
	while (*text) {
		struct piece p = piece_at(text);

		if (!put(b, p.code))
			buf__add(b, p.shown, p.shown_bytes);
		text += p.bytes;
	}
}

/* Spaces before it do not help: some programs leave them out. */
static bool is_formula(const char *text)
{
	uint32_t code = 0;

	text += strspn(text, " ");
	return utf8_character(text, &code) &&
	       (code == '=' || code == '+' || code == '-' || code == '@' || code == 0xff1d ||
		code == 0xff0b || code == 0xff0d || code == 0xff20);
}

static bool put_csv(struct buf *b, uint32_t code)
{
	if (code == '"')
		buf__str(b, "\"\"");
	return code == '"';
}

void buf__csv(struct buf *b, const char *text)
{
	bool quoted = strpbrk(text, ",\";") != NULL;

	if (quoted)
		buf__char(b, '"');
	if (is_formula(text))
		buf__char(b, '\'');
	add_all(b, text, put_csv);
	if (quoted)
		buf__char(b, '"');
}

static bool put_folded(struct buf *b, uint32_t code)
{
	bool separates = code == ' ' || code == ';' || (code >= '\t' && code <= '\r');

	if (separates)
		buf__char(b, '_');
	return separates;
}

void buf__folded(struct buf *b, const char *text)
{
	add_all(b, text, put_folded);
}

void buf__list_item(struct buf *b, const char *text)
{
	for (;;) {
		size_t run = strcspn(text, ";");

		buf__add(b, text, run);
		text += run;
		if (!*text++)
			return;
		buf__char(b, '_');
	}
}

static bool put_label(struct buf *b, uint32_t code)
{
	if (code == '"' || code == '\\')
		buf__char(b, '\\');
	return false;
}

void buf__label(struct buf *b, const char *text)
{
	add_all(b, text, put_label);
}

static bool put_html(struct buf *b, uint32_t code)
{
	bool special = code && code < 0x80 && strchr("<>&\"'", (int)code);

	if (special)
		buf__printf(b, "&#%u;", (unsigned int)code);
	return special;
}

void buf__html(struct buf *b, const char *text)
{
	add_all(b, text, put_html);
}

static bool put_file_name(struct buf *b, uint32_t code)
{
	bool special = code == ' ' || code == '/' || acts(code);

	if (special)
		buf__char(b, '_');
	return special;
}

void buf__file_name(struct buf *b, const char *text)
{
	add_all(b, text, put_file_name);
}

/* ---- JSON ---- */

/* Beyond the first 64 Ki codes JSON wants two surrogates. */
static void json_code(struct buf *b, uint32_t code)
{
	if (code > 0xffff) {
		buf__printf(b, "\\u%04x", 0xd800 + (unsigned int)((code - 0x10000) >> 10));
		code = 0xdc00 + (code & 0x3ff);
	}
	buf__printf(b, "\\u%04x", (unsigned int)code);
}

static size_t json_special(struct buf *b, const char *text)
{
	struct piece p;

	if (*text == '"' || *text == '\\') {
		buf__char(b, '\\');
		buf__char(b, *text);
		return 1;
	}
	p = piece_at(text);
	if (p.acts || p.broken)
		json_code(b, p.code);
	else
		buf__add(b, text, p.bytes);
	return p.bytes;
}

static bool json_plain(char c)
{
	return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

void buf__json(struct buf *b, const char *text)
{
	buf__char(b, '"');
	while (*text) {
		const char *from = text;

		while (json_plain(*text))
			text++;
		buf__add(b, from, (size_t)(text - from));
		if (*text)
			text += json_special(b, text);
	}
	buf__char(b, '"');
}

/* Appends what a page shows of one escape of buf__json(). Returns the bytes that it took. */
static size_t page_escape(struct buf *to, const char *p, size_t left)
{
	if (left < 6 || p[1] != 'u') {
		buf__add(to, p, left < 2 ? left : 2);
		return left < 2 ? left : 2;
	}
	if (!memcmp(p + 2, "fffd", 4))
		buf__add(to, p, 6);
	else if (memcmp(p + 2, "dc", 2) < 0 || memcmp(p + 2, "df", 2) > 0)
		buf__char(to, '?');
	/* The second of two surrogates: one '?' stands there already. */
	return 6;
}

void buf__page_json(struct buf *to, const struct buf *from)
{
	for (size_t at = 0; at < from->nr;) {
		const char *p = from->bytes + at;
		size_t left = from->nr - at, run = 0;

		while (run < left && p[run] != '<' && p[run] != '\\')
			run++;
		buf__add(to, p, run);
		at += run;
		if (run == left)
			return;
		if (p[run] == '<') {
			buf__str(to, "\\u003c");
			at++;
		} else {
			at += page_escape(to, p + run, left - run);
		}
	}
}
