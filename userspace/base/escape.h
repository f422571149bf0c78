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

/* Whether the text is valid UTF-8 without characters that act. */
bool text_is_plain(const char *text);

/* Appends the text as part of a line. */
void buf__line(struct buf *b, const char *text);
/* Appends its first so many characters as part of a line. */
void buf__line_part(struct buf *b, const char *text, size_t characters);
/* Writes the text as part of a line into `to`, which holds `bytes` (at least 1), zero-terminated.
 * Cuts it at a whole character if it does not fit. Returns its length in bytes. Does not allocate.
 */
size_t line_into(char *to, size_t bytes, const char *text);
/* Counts the characters of the text as a line, and returns the text behind its first so many. */
size_t line_characters(const char *text);
const char *line_behind(const char *text, size_t characters);

/* Appends a CSV field, quoted where RFC 4180 requires it and where a program might split at a
 * semicolon. A text that spreadsheets would take for a formula (it begins with =, +, -, @ or their
 * wide forms) gets an apostrophe in front. Not for numbers. */
void buf__csv(struct buf *b, const char *text);

/* Appends a frame of a folded stack, without characters that would separate frames or end the
 * stack. */
void buf__folded(struct buf *b, const char *text);

/* Appends one item of a semicolon-separated list and replaces its own semicolons only. The finished
 * list then goes through the output format's function. */
void buf__list_item(struct buf *b, const char *text);

/* Appends a label value in Prometheus' text format, without the quotes. */
void buf__label(struct buf *b, const char *text);

/* Appends text for an HTML element or a quoted attribute. */
void buf__html(struct buf *b, const char *text);

/* Appends text for a part of a file name. */
void buf__file_name(struct buf *b, const char *text);

/* Appends a JSON string with its quotes. */
void buf__json(struct buf *b, const char *text);

/* Appends JSON whose strings buf__json() wrote in a form that may stand between <script> and
 * </script>. `from` holds whole strings only. */
void buf__page_json(struct buf *to, const struct buf *from);

#endif /* GP_BASE_ESCAPE_H */
