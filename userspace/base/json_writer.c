/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * See json_writer.h. A trace of a million events has ten million keys: a separator, a key and its
 * colon go into the buffer in one step, and a piece of a style is copied as the eight bytes that
 * all have.
 */
#include "base/json_writer.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/banned.h"
#include "base/buf.h"

/* A comma, a line end and the deepest indent. */
#define SEPARATOR_MAX (2 + UINT8_MAX + JSON_PIECE)

const struct json_style json_tight = JSON_STYLE("", ",", ":", "");
const struct json_style json_spaced = JSON_STYLE("", ", ", ": ", "");
const struct json_style json_document = JSON_STYLE("\n  ", ",\n  ", ": ", "\n");
const struct json_style json_rows = JSON_STYLE("\n    ", ",\n    ", ": ", "\n  ");
const struct json_style json_lines = JSON_STYLE("\n", ",\n", ": ", "");

void json__init(struct json_writer *j, struct buf *out)
{
	*j = (struct json_writer){.out = out};
}

static char *put_piece(char *at, const struct json_piece *piece)
{
	memcpy(at, piece->text, JSON_PIECE);
	return at + piece->nr;
}

static char *put_new_line(struct json_writer *j, char *at)
{
	j->on_new_line = false;
	*at++ = '\n';
	memset(at, ' ', j->indent);
	return at + j->indent;
}

static char *put_first(struct json_writer *j, struct json_level *level, char *at)
{
	level->any = true;
	return j->on_new_line ? put_new_line(j, at) : put_piece(at, &level->style->first);
}

/* What stands before a key or an element; mostly a comma. */
static inline char *put_separator(struct json_writer *j, struct json_level *level, char *at)
{
	if (!level->any)
		return put_first(j, level, at);
	if (!j->on_new_line)
		return put_piece(at, &level->style->between);
	*at++ = ',';
	return put_new_line(j, at);
}

/* The level that is open; outside all of them, NULL. */
static struct json_level *innermost(struct json_writer *j)
{
	return j->depth ? &j->levels[j->depth - 1] : NULL;
}

char *json__begin_value(struct json_writer *j, size_t bytes)
{
	struct json_level *level = innermost(j);
	char *at = buf__room(j->out, SEPARATOR_MAX + bytes);
	bool is_element = !j->after_key && level;

	assert(!is_element || level->is_array);
	j->after_key = false;
	return at && is_element ? put_separator(j, level, at) : at;
}

static void finish(struct json_writer *j, char *end)
{
	buf__advance(j->out, end);
}

/* The same for a value that buf's own functions append. */
static void separate(struct json_writer *j)
{
	char *at;

	if (j->after_key) {
		j->after_key = false;
		return;
	}
	at = json__begin_value(j, 0);
	if (at)
		finish(j, at);
}

static void put_bytes(struct json_writer *j, const char *text, size_t bytes)
{
	char *at = json__begin_value(j, bytes);

	if (!at)
		return;
	memcpy(at, text, bytes);
	finish(j, at + bytes);
}

/* ---- brackets ---- */

static void open_level(struct json_writer *j, const struct json_style *style, bool is_array)
{
	put_bytes(j, is_array ? "[" : "{", 1);
	assert(j->depth < JSON_DEPTH);
	j->levels[j->depth++] = (struct json_level){.style = style, .is_array = is_array};
}

void json__object(struct json_writer *j, const struct json_style *style)
{
	open_level(j, style, false);
}

void json__array(struct json_writer *j, const struct json_style *style)
{
	open_level(j, style, true);
}

void json__end(struct json_writer *j)
{
	const struct json_level *level = innermost(j);
	char *at = buf__room(j->out, SEPARATOR_MAX + 1);

	assert(level && !j->after_key);
	j->depth--;
	if (!at)
		return;
	at = j->on_new_line ? put_new_line(j, at) : put_piece(at, &level->style->last);
	*at++ = level->is_array ? ']' : '}';
	finish(j, at);
}

void json__new_line(struct json_writer *j, uint8_t indent)
{
	j->on_new_line = true;
	j->indent = indent;
}

/* ---- keys ---- */

char *json__begin_key(struct json_writer *j, size_t bytes)
{
	struct json_level *level = innermost(j);
	char *at = buf__room(j->out, SEPARATOR_MAX + bytes + 2 + JSON_PIECE);

	assert(level && !level->is_array && !j->after_key);
	j->after_key = true;
	j->colon = &level->style->colon;
	if (!at)
		return NULL;
	at = put_separator(j, level, at);
	*at = '"';
	return at + 1;
}

void json__key_text(struct json_writer *j, const char *text)
{
	char *at = json__begin_key(j, 0);

	if (!at)
		return;
	/* The quote is buf__json()'s. */
	finish(j, at - 1);
	buf__json(j->out, text);
	at = buf__room(j->out, JSON_PIECE);
	if (at)
		finish(j, put_piece(at, j->colon));
}

/* ---- values ---- */

void json__text(struct json_writer *j, const char *text)
{
	if (!text) {
		json__null(j);
		return;
	}
	separate(j);
	buf__json(j->out, text);
}

void json__begin_word(struct json_writer *j)
{
	put_bytes(j, "\"", 1);
}

void json__end_word(struct json_writer *j)
{
	buf__char(j->out, '"');
}

void json__printf(struct json_writer *j, const char *fmt, ...)
{
	va_list ap;

	json__begin_word(j);
	va_start(ap, fmt);
	buf__vprintf(j->out, fmt, ap);
	va_end(ap);
	json__end_word(j);
}

void json__u64(struct json_writer *j, uint64_t n)
{
	char *at = json__begin_value(j, BUF_NUMBER_BYTES);

	if (at)
		finish(j, put_u64(at, n));
}

void json__i64(struct json_writer *j, int64_t n)
{
	char *at = json__begin_value(j, BUF_NUMBER_BYTES);

	if (at)
		finish(j, put_i64(at, n));
}

void json__us(struct json_writer *j, int64_t ns)
{
	char *at = json__begin_value(j, BUF_NUMBER_BYTES);

	if (at)
		finish(j, put_us(at, ns));
}

void json__duration(struct json_writer *j, uint64_t ns)
{
	json__us(j, ns > INT64_MAX ? INT64_MAX : (int64_t)ns);
}

void json__fixed(struct json_writer *j, double number, int decimals)
{
	separate(j);
	buf__printf(j->out, "%.*f", decimals, number);
}

void json__rounded(struct json_writer *j, double number)
{
	separate(j);
	buf__printf(j->out, "%g", number);
}

void json__shortest(struct json_writer *j, double number)
{
	char text[40];

	for (int digits = 6; digits <= 17; digits++) {
		(void)snprintf(text, sizeof(text), "%.*g", digits, number);
		if (strtod(text, NULL) == number)
			break;
	}
	json__number_text(j, text);
}

void json__number_text(struct json_writer *j, const char *number)
{
	put_bytes(j, number, strlen(number));
}

void json__bool(struct json_writer *j, bool is)
{
	put_bytes(j, is ? "true" : "false", is ? 4 : 5);
}

void json__null(struct json_writer *j)
{
	put_bytes(j, "null", 4);
}
