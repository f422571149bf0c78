/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Compiles and matches globs. For a bracket expression, fnmatch() is asked about each byte.
 */
#include "probe/plan/globs.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdint.h>
#include <string.h>

#include "base/banned.h"

#define BRACKETS_MAX 256

struct compiler {
	struct gp_globs *globs;
	uint32_t tokens_nr, sets_nr;
};

static int add(struct compiler *c, enum gp_glob_kind kind, uint8_t value)
{
	/* The last token stays GP_GLOB_STOP. */
	if (c->tokens_nr == GP_GLOB_TOKENS - 1)
		return -E2BIG;
	c->globs->tokens[c->tokens_nr++] = (uint16_t)(kind << 8 | value);
	return 0;
}

/* Returns the length of the bracket expression at the beginning of the text; 0: it has no end. */
static size_t brackets(const char *text, size_t nr)
{
	size_t i = 1;

	if (i < nr && (text[i] == '!' || text[i] == '^'))
		i++;
	for (size_t first = i; i < nr; i++) {
		const char *end;

		if (text[i] == ']' && i > first)
			return i + 1;
		if (text[i] == '\\')
			i++;
		if (text[i] != '[' || i + 1 >= nr || !strchr(":.=", text[i + 1]))
			continue;
		/* [:alpha:] and the like. */
		end = i + 2 < nr ? memchr(text + i + 2, text[i + 1], nr - i - 2) : NULL;
		if (end && end + 1 < text + nr && end[1] == ']')
			i = (size_t)(end + 1 - text);
	}
	return 0;
}

static int add_set(struct compiler *c, const char *text, size_t nr)
{
	char one[BRACKETS_MAX];
	__u64 *set;

	if (c->sets_nr == GP_GLOB_SETS || nr >= sizeof(one))
		return -E2BIG;
	memcpy(one, text, nr);
	one[nr] = '\0';
	set = &c->globs->sets[4 * c->sets_nr];
	for (int byte = 1; byte < 256; byte++)
		if (!fnmatch(one, (char[]){(char)byte, '\0'}, 0))
			set[byte >> 6] |= 1ULL << (byte & 63);
	return add(c, GP_GLOB_SET, (uint8_t)c->sets_nr++);
}

static int add_pattern(struct compiler *c, const char *text, size_t nr)
{
	int err = 0;

	for (size_t i = 0; i < nr && !err; i++) {
		size_t set = text[i] == '[' ? brackets(text + i, nr - i) : 0;

		if (set) {
			err = add_set(c, text + i, set);
			i += set - 1;
		} else if (text[i] == '*') {
			err = add(c, GP_GLOB_MANY, 0);
		} else if (text[i] == '?') {
			err = add(c, GP_GLOB_ANY, 0);
		} else {
			i += text[i] == '\\' && i + 1 < nr;
			err = add(c, GP_GLOB_BYTE, (uint8_t)text[i]);
		}
	}
	return err ? err : add(c, GP_GLOB_END, 0);
}

int globs_compile(const char *text, struct gp_globs *ret)
{
	struct compiler c = {.globs = ret};
	int err = 0;

	memset(ret, 0, sizeof(*ret));
	while (*text && !err) {
		size_t nr = strcspn(text, ",");

		if (nr)
			err = add_pattern(&c, text, nr);
		text += nr + (text[nr] == ',');
	}
	return err;
}

bool globs_fit(const struct gp_globs *globs, const char *name)
{
	struct gp_glob_search search = {0};

	while (!gp_glob_step(globs->tokens, globs->sets, &search, (uint8_t)name[search.byte]))
		;
	return search.fits;
}
