/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A streaming JSON writer. It puts commas, colons, brackets, escapes and number formats into a
 * buffer, and remembers nothing but the brackets that are open: the buffer may be drained at any
 * time between two calls. Each object and array has a style, which says where its spaces and line
 * ends are. An allocation failure stays with the buffer, as buf__error() reports.
 */
#ifndef GP_BASE_JSON_WRITER_H
#define GP_BASE_JSON_WRITER_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Objects and arrays inside each other. */
#define JSON_DEPTH 12

/* Bytes of the longest piece of a style. */
#define JSON_PIECE 8

struct json_piece {
	char text[JSON_PIECE]; /* no terminating zero */
	uint8_t nr;
};

/* What stands between the values of one object or array. */
struct json_style {
	struct json_piece first;   /* before the first key or element */
	struct json_piece between; /* before each other one, the comma included */
	struct json_piece colon;   /* after a key */
	struct json_piece last; /* before the closing bracket, also if nothing stands before it */
};

/* clang-format off */
#define JSON_PIECE_OF(piece) {.text = piece, .nr = sizeof(piece) - 1}
#define JSON_STYLE(first_, between_, colon_, last_)                                                \
	{                                                                                          \
		.first = JSON_PIECE_OF(first_), .between = JSON_PIECE_OF(between_),                \
		.colon = JSON_PIECE_OF(colon_), .last = JSON_PIECE_OF(last_),                      \
	}
/* clang-format on */

extern const struct json_style json_tight;    /* {"a":1,"b":[2,3]} */
extern const struct json_style json_spaced;   /* {"a": 1, "b": [2, 3]} */
extern const struct json_style json_document; /* each key on a line of its own, indented by two */
extern const struct json_style json_rows;     /* of a list in a document: by four */
extern const struct json_style json_lines;    /* each on a line of its own, not indented */

struct json_level {
	const struct json_style *style;
	bool is_array;
	bool any; /* something stands in it */
};

struct json_writer {
	struct buf *out; /* borrowed */
	bool after_key;
	bool on_new_line;
	uint8_t indent; /* of the new line */
	uint8_t depth;
	const struct json_piece *colon; /* of the last key */
	struct json_level levels[JSON_DEPTH];
};

/* Begins a document at the end of the buffer, which must outlive the writer. Nothing to free. */
void json__init(struct json_writer *j, struct buf *out);

/* ---- brackets ---- */

void json__object(struct json_writer *j, const struct json_style *style);
void json__array(struct json_writer *j, const struct json_style *style);

/* Closes the innermost object or array. */
void json__end(struct json_writer *j);

/* Puts the next key, element or closing bracket on a line of its own, indented by so many spaces,
 * where the style does not. */
void json__new_line(struct json_writer *j, uint8_t indent);

/* ---- keys ---- */

/* Room for a key of so many bytes behind its separator and quote; NULL: there is no memory. */
char *json__begin_key(struct json_writer *j, size_t bytes);

/* A key that needs no escapes. Inline, so that the bytes of a literal are copied without a call. */
static inline void json__key(struct json_writer *j, const char *name)
{
	size_t bytes = strlen(name);
	char *at = json__begin_key(j, bytes);

	if (!at)
		return;
	memcpy(at, name, bytes);
	at += bytes;
	*at++ = '"';
	memcpy(at, j->colon->text, JSON_PIECE);
	buf__advance(j->out, at + j->colon->nr);
}

/* A key that a program chose. */
void json__key_text(struct json_writer *j, const char *text);

/* ---- values: after a key, or the next of an array ---- */

/* Room for a value of so many bytes; the separator of an array's element is before it. NULL: there
 * is no memory. */
char *json__begin_value(struct json_writer *j, size_t bytes);

/* A text that a program chose; NULL writes null. */
void json__text(struct json_writer *j, const char *text);

/* A word: a text of our own that needs no escapes. */
static inline void json__word(struct json_writer *j, const char *word)
{
	size_t bytes = strlen(word);
	char *at = json__begin_value(j, bytes + 2);

	if (!at)
		return;
	*at++ = '"';
	memcpy(at, word, bytes);
	at += bytes;
	*at++ = '"';
	buf__advance(j->out, at);
}

/* Opens such a word for buf's functions to append to, and closes it. */
void json__begin_word(struct json_writer *j);
void json__end_word(struct json_writer *j);

/* What printf() would write, as a text; not for texts that a program chose. */
void json__printf(struct json_writer *j, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

void json__u64(struct json_writer *j, uint64_t n);
void json__i64(struct json_writer *j, int64_t n);

/* Nanoseconds as microseconds with exactly three decimals. */
void json__us(struct json_writer *j, int64_t ns);

/* The same of a duration; more than INT64_MAX is written as that. */
void json__duration(struct json_writer *j, uint64_t ns);

/* A finite number with so many decimals. */
void json__fixed(struct json_writer *j, double number, int decimals);

/* A finite number rounded to six digits. */
void json__rounded(struct json_writer *j, double number);

/* A finite number in the fewest digits (6 at least) that read back as the same. */
void json__shortest(struct json_writer *j, double number);

/* A number that is JSON already. */
void json__number_text(struct json_writer *j, const char *number);

void json__bool(struct json_writer *j, bool is);
void json__null(struct json_writer *j);

/* ---- a key and its value ---- */

static inline void json__put_object(struct json_writer *j, const char *name,
				    const struct json_style *style)
{
	json__key(j, name);
	json__object(j, style);
}

static inline void json__put_array(struct json_writer *j, const char *name,
				   const struct json_style *style)
{
	json__key(j, name);
	json__array(j, style);
}

static inline void json__put_text(struct json_writer *j, const char *name, const char *text)
{
	json__key(j, name);
	json__text(j, text);
}

static inline void json__put_word(struct json_writer *j, const char *name, const char *word)
{
	json__key(j, name);
	json__word(j, word);
}

static inline void json__put_u64(struct json_writer *j, const char *name, uint64_t n)
{
	json__key(j, name);
	json__u64(j, n);
}

static inline void json__put_i64(struct json_writer *j, const char *name, int64_t n)
{
	json__key(j, name);
	json__i64(j, n);
}

static inline void json__put_us(struct json_writer *j, const char *name, int64_t ns)
{
	json__key(j, name);
	json__us(j, ns);
}

static inline void json__put_duration(struct json_writer *j, const char *name, uint64_t ns)
{
	json__key(j, name);
	json__duration(j, ns);
}

static inline void json__put_fixed(struct json_writer *j, const char *name, double number,
				   int decimals)
{
	json__key(j, name);
	json__fixed(j, number, decimals);
}

static inline void json__put_bool(struct json_writer *j, const char *name, bool is)
{
	json__key(j, name);
	json__bool(j, is);
}

static inline void json__put_null(struct json_writer *j, const char *name)
{
	json__key(j, name);
	json__null(j);
}

#endif /* GP_BASE_JSON_WRITER_H */
