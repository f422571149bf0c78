/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * One numbering of names. Two texts with the same 64-bit hash would share a number: with the few
 * thousand names of a capture the odds are below one in 10^12.
 */
#include "capture/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* More names than this in one capture are a target's bug or malice. */
#define NAMES_MAX 1000000

/* So much is kept of texts, where they are. */
#define TEXT_BYTES_MAX (64U << 20)

static uint64_t source_key(uint32_t source, uint32_t id)
{
	return (uint64_t)source << 32 | id;
}

static uint64_t text_key(const char *name, const char *overload)
{
	return hash_bytes(name, strlen(name)) ^ hash_mix(hash_bytes(overload, strlen(overload)));
}

static int keep_text(struct names *n, const char *name)
{
	char *text;

	n->text_bytes += strlen(name);
	if (n->text_bytes > TEXT_BYTES_MAX)
		return -ENOSPC;
	text = strdup(name);
	if (!text || vec_push(&n->texts, text)) {
		free(text);
		return -ENOMEM;
	}
	return 0;
}

const char *names__text(const struct names *n, uint32_t number)
{
	return number && number <= n->texts.nr ? n->texts.items[number - 1] : "";
}

int64_t names__number(struct names *n, struct recording_writer *w, const char *name,
		      const char *overload)
{
	uint64_t text = text_key(name, overload);
	uint64_t *known = hash__find(&n->by_text, text);
	int err;

	if (known)
		return (int64_t)*known;
	if (n->nr >= NAMES_MAX)
		return -ENOSPC;
	if (n->keep) {
		err = keep_text(n, name);
		if (err)
			return err;
	}
	err = recording_writer__name(w, n->nr + 1, name, overload);
	if (!err)
		err = hash__set(&n->by_text, text, n->nr + 1);
	return err ? (int64_t)err : (int64_t)++n->nr;
}

int64_t names__add(struct names *n, struct recording_writer *w, uint32_t source, uint32_t id,
		   const char *name, const char *overload)
{
	int64_t number = names__number(n, w, name, overload);
	int err =
		number < 0 ? 0 : hash__set(&n->by_source, source_key(source, id), (uint64_t)number);

	return err ? (int64_t)err : number;
}

uint32_t names__find(const struct names *n, uint32_t source, uint32_t id)
{
	uint64_t *number = hash__find(&n->by_source, source_key(source, id));

	return number ? (uint32_t)*number : 0;
}

void names__done(struct names *n)
{
	hash__done(&n->by_text);
	hash__done(&n->by_source);
	for (size_t i = 0; i < n->texts.nr; i++)
		free(n->texts.items[i]);
	vec_done(&n->texts);
}
