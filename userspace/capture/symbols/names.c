/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * One numbering of names. Two texts with the same 64-bit hash would share a number: with the few
 * thousand names of a capture the odds are below one in 10^12.
 */
#include "capture/symbols/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* More names than this in one capture, or longer ones together, are a target's bug or malice. */
#define NAMES_MAX      1000000
#define TEXT_BYTES_MAX (64U << 20)

static uint64_t text_key(const char *name, const char *overload)
{
	return hash_bytes(name, strlen(name)) ^ hash_mix(hash_bytes(overload, strlen(overload)));
}

const char *names__text(const struct names *n, uint32_t number)
{
	return number && number <= n->texts.nr ? n->texts.items[number - 1] : "";
}

static int keep_text(struct names *n, const char *name, const char *overload)
{
	size_t name_bytes = strlen(name) + 1, overload_bytes = strlen(overload) + 1;
	char *text;

	if (n->texts.nr >= NAMES_MAX ||
	    n->text_bytes + name_bytes + overload_bytes > TEXT_BYTES_MAX)
		return -ENOSPC;
	text = malloc(name_bytes + overload_bytes);
	if (!text)
		return -ENOMEM;
	memcpy(text, name, name_bytes);
	memcpy(text + name_bytes, overload, overload_bytes);
	if (vec_push(&n->texts, text)) {
		free(text);
		return -ENOMEM;
	}
	n->text_bytes += name_bytes + overload_bytes;
	return 0;
}

int64_t names__number(struct names *n, const char *name, const char *overload)
{
	uint64_t text = text_key(name, overload);
	uint64_t *known = hash__find(&n->by_text, text);
	int err;

	if (known)
		return (int64_t)*known;
	err = keep_text(n, name, overload);
	err = err ? err : hash__set(&n->by_text, text, n->texts.nr);
	return err ? (int64_t)err : (int64_t)n->texts.nr;
}

int64_t names__add(struct names *n, uint32_t source, uint32_t id, const char *name,
		   const char *overload)
{
	int64_t number = names__number(n, name, overload);
	int err =
		number < 0 ? 0 : hash__set(&n->by_source, source_key(source, id), (uint64_t)number);

	return err ? (int64_t)err : number;
}

int names__write(const struct names *n, struct segment *to, uint32_t number)
{
	const char *name = names__text(n, number);
	int err;

	if (!number || number > n->texts.nr)
		return 0;
	err = bits__set(&to->names, number);
	return err ? err
		   : recording_writer__name(to->writer, number, name, name + strlen(name) + 1);
}

void names__forget(struct names *n, uint32_t source)
{
	hash__delete_high(&n->by_source, source);
}

void names__done(struct names *n)
{
	hash__done(&n->by_text);
	hash__done(&n->by_source);
	for (size_t i = 0; i < n->texts.nr; i++)
		free(n->texts.items[i]);
	vec_done(&n->texts);
}
