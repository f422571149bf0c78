/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Parses schema texts. The library is not trusted: malformed texts are skipped, and their number
 * and length are bounded.
 */
#include "probe/plan/schemas.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/hash.h"
#include "inspect/elf/elf.h"

/* More than any library has; bounds the work for a hostile one to a second. */
#define TEXTS_MAX 65536
/* Limit from a schema's first byte to its arrow. */
#define SCHEMA_BYTES_MAX 8192
#define NAME_BYTES_MAX	 128
#define ARGUMENTS_MAX	 128

int schemas_each(const unsigned char *data, size_t bytes,
		 int (*fn)(const char *text, size_t bytes, void *arg), void *arg)
{
	static const char arrow[] = ") -> ";
	size_t at = 0, string = 0, texts = 0;
	int err = 0;

	while (!err && at < bytes && texts++ < TEXTS_MAX) {
		const unsigned char *hit = memmem(data + at, bytes - at, arrow, strlen(arrow));
		size_t end, low, start;

		if (!hit)
			return 0;
		end = (size_t)(hit - data);
		low = end > SCHEMA_BYTES_MAX ? end - SCHEMA_BYTES_MAX : 0;
		if (low < string)
			low = string;
		start = end;
		while (start > low && data[start - 1])
			start--;
		/* Otherwise it begins too far away, or it had an arrow already. */
		if (!start || !data[start - 1])
			err = fn((const char *)data + start, end - start, arg);
		at = end + strlen(arrow);
		string = at;
	}
	return err;
}

/* ---- one text ---- */

/* Returns the length of the first argument: up to a comma outside of brackets and quotes. */
static size_t argument(const char *text, size_t bytes)
{
	char quote = 0;
	int depth = 0;

	for (size_t i = 0; i < bytes; i++) {
		char c = text[i];

		if (quote)
			quote = c == quote ? 0 : quote;
		else if (c == '"' || c == '\'')
			quote = c;
		else if (c == '(' || c == '[')
			depth++;
		else if (c == ')' || c == ']')
			depth--;
		else if (c == ',' && depth <= 0)
			return i;
	}
	return bytes;
}

/* "Tensor(a!)[] self" -> 'L'. A list with optional items does not count as a list. */
static char letter_of(const char *text, size_t bytes)
{
	static const char tensor[] = "Tensor";
	bool writes = false, list, optional;
	const char *at = text + strlen(tensor), *end = text + bytes, *close;

	if (bytes < strlen(tensor) || memcmp(text, tensor, strlen(tensor)))
		return 'o';
	if (at < end && *at == '(') {
		close = memchr(at, ')', (size_t)(end - at));
		if (!close)
			return 'o';
		writes = memchr(at, '!', (size_t)(close - at)) != NULL;
		at = close + 1;
	}
	list = at + 1 < end && at[0] == '[';
	if (list) {
		close = memchr(at, ']', (size_t)(end - at));
		at = close ? close + 1 : end;
	}
	optional = at < end && *at == '?';
	if (optional && !list && at + 1 < end && at[1] == '[')
		return 'o';
	if (list)
		return optional ? (writes ? 'K' : 'k') : (writes ? 'L' : 'l');
	return optional ? (writes ? 'Q' : 'q') : (writes ? 'T' : 't');
}

static bool is_name(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '.' || c == ':';
}

void schemas_line(const char *text, size_t bytes, struct buf *out)
{
	static const char prefix[] = "aten::";
	char letters[ARGUMENTS_MAX];
	size_t head = 0, base = 0, nr = 0;

	if (bytes > strlen(prefix) && !memcmp(text, prefix, strlen(prefix))) {
		text += strlen(prefix);
		bytes -= strlen(prefix);
	}
	while (head < bytes && is_name(text[head]))
		head++;
	if (!head || head == bytes || text[head] != '(' || head > NAME_BYTES_MAX)
		return;
	while (base < head && text[base] != '.')
		base++;
	for (size_t at = head + 1; at < bytes;) {
		size_t length;

		while (at < bytes && text[at] == ' ')
			at++;
		length = argument(text + at, bytes - at);
		/* Arguments after the star are passed by name, and are arguments like any other. */
		if (length && !(length == 1 && text[at] == '*')) {
			if (nr == sizeof(letters))
				return;
			letters[nr++] = letter_of(text + at, length);
		}
		at += length + 1;
	}
	buf__add(out, text, base);
	buf__char(out, ' ');
	buf__add(out, letters, nr);
	buf__char(out, '\n');
}

/* ---- all of a library's ---- */

struct lines {
	struct buf *out;
	struct hash seen;
};

static int add_line(const char *text, size_t bytes, void *arg)
{
	struct lines *l = arg;
	size_t before = l->out->nr;
	uint64_t key;

	schemas_line(text, bytes, l->out);
	if (buf__error(l->out) || l->out->nr == before)
		return buf__error(l->out);
	key = hash_bytes(l->out->bytes + before, l->out->nr - before);
	if (!hash__find(&l->seen, key))
		return hash__set(&l->seen, key, 1);
	l->out->nr = before;
	return 0;
}

int schemas_read(const char *path, struct reason *why, struct buf *out)
{
	struct lines lines = {.out = out};
	const unsigned char *data;
	struct elf_file *file;
	uint64_t address;
	size_t bytes;
	int err = elf_file__open(path, why, &file);

	if (err)
		return err;
	err = elf_file__section(file, ".rodata", &data, &bytes, &address);
	if (err)
		(void)reason_set(why, err, "'%s' has no read-only data", path);
	else
		err = schemas_each(data, bytes, add_line, &lines);
	hash__done(&lines.seen);
	elf_file__free(file);
	return err;
}
