/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Tables and outputs of a test.
 */
#include "outputs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct table *table_of(const struct timeline *t, struct table_options options)
{
	struct table *table = NULL;
	struct reason why = {0};

	if (table__new(t, &options, &why, &table))
		fail_msg("table__new: %s", why.text);
	return table;
}

struct sink *memory_sink(void)
{
	struct sink *s = NULL;

	assert_int_equal(sink__new_memory(&s), 0);
	return s;
}

char *sink_text(struct sink *s, size_t *ret_bytes)
{
	const char *bytes;
	char *copy;
	size_t nr;

	assert_int_equal(sink__finish(s), 0);
	bytes = sink__bytes(s, &nr);
	copy = malloc(nr + 1);
	assert_non_null(copy);
	if (nr)
		memcpy(copy, bytes, nr);
	copy[nr] = '\0';
	if (ret_bytes)
		*ret_bytes = nr;
	sink__free(s);
	return copy;
}

unsigned int count_of(const char *text, const char *what)
{
	unsigned int nr = 0;

	while ((text = strstr(text, what))) {
		text += strlen(what);
		nr++;
	}
	return nr;
}
