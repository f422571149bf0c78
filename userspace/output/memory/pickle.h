/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Python's pickle format, protocol 4: as much as dictionaries, lists, texts and numbers need.
 * Values are written one after the other; a list or dictionary is begun, filled and ended. Private
 * to this room.
 */
#ifndef GP_OUTPUT_MEMORY_PICKLE_H
#define GP_OUTPUT_MEMORY_PICKLE_H

#include "base/hash.h"
#include "base/vec.h"
#include "output/format/output.h"

struct pickle {
	struct sink *sink;
	struct buf out;
	struct hash text_of;	 /* hash of a text -> its place in the reader's memo */
	VEC(const char *) texts; /* by place; NULL: something else lies there */
	int err;		 /* the first one; sticks */
};

/* Begins one, which the owner gives to pickle__done(). */
void pickle__begin(struct pickle *p, struct sink *s);
/* All is out. 0 or -errno. */
int pickle__end(struct pickle *p);
void pickle__done(struct pickle *p);

/* The text must stay where it is until the end. It is written as a line is
 * (base/escape.h). */
void pickle__text(struct pickle *p, const char *text);

/* Its values follow, and then its end. */
void pickle__list(struct pickle *p);
void pickle__list_end(struct pickle *p);
/* In a dictionary a key, then its value, and so on. */
void pickle__dict(struct pickle *p);
void pickle__dict_end(struct pickle *p);
void pickle__key_int(struct pickle *p, const char *key, int64_t n);
void pickle__key_text(struct pickle *p, const char *key, const char *text);

/* Remembers the value that was just ended, in this place of the memo; writes what lies in one. */
uint32_t pickle__remember(struct pickle *p);
void pickle__again(struct pickle *p, uint32_t place);

#endif /* GP_OUTPUT_MEMORY_PICKLE_H */
