/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Text that a target chose, on its way out. Names of operators, threads, kernels, functions, files,
 * modules and GPUs, command lines, metadata, messages that quote any of them: a hostile process
 * chooses every byte. A recording keeps the bytes as they came (a zero byte is '?', because texts
 * end at one). Every output passes such text through one function of this header, one per format.
 *
 * A character acts if a terminal, a reader of lines or an eye takes it for more than a letter:
 *
 *   U+0000-001F, U+007F, U+0080-009F      control characters (C0, DEL, C1)
 *   U+061C, U+200E, U+200F                direction marks
 *   U+2028-202E, U+2066-206F              line ends, embeddings, overrides, isolates, swaps
 *   U+FFF9-FFFB                           interlinear annotation
 *   U+FDD0-FDEF, U+nFFFE, U+nFFFF         no characters at all
 *
 * All other characters stand as they are, whatever their script. Bytes that are no well-formed
 * UTF-8 (overlong forms and surrogates among them) become one U+FFFD each in every format.
 *
 *   format                       characters that act   what else            function
 *   ---------------------------  --------------------  -------------------  --------------------
 *   text for people: tables,     '?'                   nothing              buf__line(),
 *     top, list, doctor, log                                                  buf__line_part(),
 *                                                                             line_into()
 *   pprof, Perfetto, pickle      '?'                   nothing              buf__line()
 *   CSV                          '?'                   quotes doubled; a    buf__csv()
 *                                                        formula gets "'"
 *   folded stacks                '?'; U+0009-000D '_'  ' ' and ';' are '_'  buf__folded()
 *   lists joined by semicolons   as the format has it  ';' is '_'           buf__list_item()
 *   Prometheus' labels           '?'                   \\ and \"            buf__label()
 *   HTML text                    '?'                   &#N; for <>&"'       buf__html()
 *   names of files               '_'                   ' ' and '/' are '_'  buf__file_name()
 *   JSON                         \uXXXX: the same      \" and \\            buf__json()
 *                                  text to a reader
 *   JSON inside a page           '?': what a page      < is \u003c          buf__page_json()
 *                                  shows is for eyes
 *
 * A format that has escapes keeps the text, one that has none shows a substitute: its readers write
 * names to terminals as they are.
 */
#ifndef GP_BASE_ESCAPE_H
#define GP_BASE_ESCAPE_H

#include <stdbool.h>
#include <stddef.h>

struct buf;

/* Whether nothing in the text acts and all of it is UTF-8. */
bool text_is_plain(const char *text);

/* Appends the text as part of a line. */
void buf__line(struct buf *b, const char *text);
/* The same of its first so many characters. */
void buf__line_part(struct buf *b, const char *text, size_t characters);
/* The same into `to`, of `bytes` (at least 1), terminated: what finds no room is left out from a
 * whole character on. Returns the bytes before the end. Allocates nothing. */
size_t line_into(char *to, size_t bytes, const char *text);
/* How many characters a text has as a line, and the text behind the first so many. */
size_t line_characters(const char *text);
const char *line_behind(const char *text, size_t characters);

/* Appends a field of CSV, in quotes where RFC 4180 wants them and where a program might split at a
 * semicolon. A text that spreadsheets would take for a formula (=, +, -, @ and their wide forms
 * come first) has an apostrophe before it. Not for numbers. */
void buf__csv(struct buf *b, const char *text);

/* Appends a frame of a folded stack: neither separates frames nor ends them. */
void buf__folded(struct buf *b, const char *text);

/* Appends an item of a list with semicolons between, as it is but for its own semicolons. What the
 * list becomes part of goes through its own format's function. */
void buf__list_item(struct buf *b, const char *text);

/* Appends the value of a label in Prometheus' text format, without its quotes. */
void buf__label(struct buf *b, const char *text);

/* Appends text of an HTML element or, between quotes, of an attribute. */
void buf__html(struct buf *b, const char *text);

/* Appends a part of a file's name. */
void buf__file_name(struct buf *b, const char *text);

/* Appends a JSON string with its quotes. */
void buf__json(struct buf *b, const char *text);

/* Appends JSON whose strings buf__json() wrote, as it may stand between <script> and </script>. No
 * string of it is cut in two. */
void buf__page_json(struct buf *to, const struct buf *from);

#endif /* GP_BASE_ESCAPE_H */
