/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A streaming writer of Python's pickle format, protocol 4: dictionaries, lists, texts and numbers.
 * A list or dictionary is begun, filled with values and ended. Private to this room.
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

/* Begins a pickle; the caller calls pickle__done(). */
void pickle__begin(struct pickle *p, struct sink *s);
/* Ends it and writes what is left. 0 or -errno, the first error. */
int pickle__end(struct pickle *p);
void pickle__done(struct pickle *p);

/* Writes a text, as buf__line() does. It must stay where it is until pickle__end(). */
void pickle__text(struct pickle *p, const char *text);

/* Begins a list; ends it after its values. */
void pickle__list(struct pickle *p);
void pickle__list_end(struct pickle *p);
/* The same of a dictionary, whose values are a key, its value, the next key, and so on. */
void pickle__dict(struct pickle *p);
void pickle__dict_end(struct pickle *p);
void pickle__key_int(struct pickle *p, const char *key, int64_t n);
void pickle__key_text(struct pickle *p, const char *key, const char *text);

/* Remembers the value that was just ended, and returns its place in the memo. pickle__again()
 * writes the value of a place. */
uint32_t pickle__remember(struct pickle *p);
void pickle__again(struct pickle *p, uint32_t place);

#endif /* GP_OUTPUT_MEMORY_PICKLE_H */
