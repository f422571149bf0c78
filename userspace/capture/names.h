/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * One numbering of names for the recording. Each source (the kernel's probes, each collector)
 * numbers names in its own way; here each gets the recording's number, and the name is written to
 * the recording before the first event that uses it.
 */
#ifndef GP_CAPTURE_NAMES_H
#define GP_CAPTURE_NAMES_H

#include "base/hash.h"
#include "base/vec.h"
#include "recording/recording.h"

#include <stdbool.h>
#include <stdint.h>

struct names {
	struct hash by_text;   /* hash of name and overload -> number */
	struct hash by_source; /* source << 32 | its number -> number */
	uint32_t nr;
	bool keep;	   /* the texts, for names__text() */
	VEC(char *) texts; /* by number less 1 */
	uint64_t text_bytes;
};

/* The recording's number for `name` of a source's own number; writes it to `w` if it is new.
 * Returns the number (> 0) or -errno. */
int64_t names__add(struct names *n, struct recording_writer *w, uint32_t source, uint32_t id,
		   const char *name, const char *overload);

/* The same for a name that its source has no number for. */
int64_t names__number(struct names *n, struct recording_writer *w, const char *name,
		      const char *overload);

/* The number that a source's own number was given, 0 if none. */
uint32_t names__find(const struct names *n, uint32_t source, uint32_t id);

/* The name with this number; "" if it has none or texts are not kept. Valid to the next
 * names__add(). */
const char *names__text(const struct names *n, uint32_t number);

void names__done(struct names *n);

#endif /* GP_CAPTURE_NAMES_H */
