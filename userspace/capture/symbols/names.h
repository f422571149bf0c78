/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * One numbering of names for the recordings of a capture. Each source (the kernel's probes, each
 * collector) numbers names in its own way; here each gets the capture's number. A recording gets a
 * name before the first event that uses it.
 */
#ifndef GP_CAPTURE_SYMBOLS_NAMES_H
#define GP_CAPTURE_SYMBOLS_NAMES_H

#include "base/hash.h"
#include "base/vec.h"
#include "capture/recordings/segment.h"

#include <stdint.h>

struct names {
	struct hash by_text;   /* hash of name and overload -> number */
	struct hash by_source; /* source << 32 | its number -> number */
	/* By number less 1: the name, and behind its zero the overload. */
	VEC(char *) texts;
	uint64_t text_bytes;
};

/* The capture's number for `name` of a source's own number. Returns the number (> 0) or -errno:
 * -ENOSPC if there are too many. */
int64_t names__add(struct names *n, uint32_t source, uint32_t id, const char *name,
		   const char *overload);

/* The same for a name that its source has no number for. */
int64_t names__number(struct names *n, const char *name, const char *overload);

/* The number that a source's own number was given, 0 if none. */
static inline uint32_t names__find(const struct names *n, uint32_t source, uint32_t id)
{
	const uint64_t *number = hash__find(&n->by_source, source_key(source, id));

	return number ? (uint32_t)*number : 0;
}

/* Writes the name with this number into the recording, which does not have it yet. 0 or an error of
 * the writer's. */
int names__write(const struct names *n, struct segment *to, uint32_t number);

/* Makes sure that the recording has the name with this number; 0 is no name. 0 or an error of the
 * writer's. */
static inline int names__emit(const struct names *n, struct segment *to, uint32_t number)
{
	return !number || bits__has(&to->names, number) ? 0 : names__write(n, to, number);
}

/* The name with this number; "" if it has none. Valid to names__done(). */
const char *names__text(const struct names *n, uint32_t number);

/* Nothing more comes from this source: its numbers are forgotten, not the names. */
void names__forget(struct names *n, uint32_t source);

void names__done(struct names *n);

#endif /* GP_CAPTURE_SYMBOLS_NAMES_H */
