/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The rows of live totals: a leaf that all parts add to. Names come from the traced process, and
 * become one line of UTF-8 before they become a row.
 */
#include "output/summary/live_totals_parts.h"

#include <errno.h>

#include "base/banned.h"
#include "base/buf.h"
#include "base/cleanup.h"

const char *totals_keep(struct live_totals *y, const char *name)
{
	CLEANUP(buf__done) struct buf line = {0};

	buf__line(&line, name);
	return buf__error(&line) ? NULL : intern__str(y->texts, line.bytes ? line.bytes : "");
}

/* The row of this key, made if there is none; names beyond the bound share one. Its index or
 * -ENOMEM. */
static int64_t place(struct live_totals *y, enum totals_view view, uint64_t key,
		     struct totals_row row)
{
	uint64_t *at = hash__find(&y->places[view], key);

	if (at)
		return (int64_t)*at;
	if (y->rows[view].nr >= TOTALS_ROWS_MAX) {
		row = (struct totals_row){.name = intern__str(y->texts, TOTALS_OTHERS)};
		key = row.name ? (uintptr_t)row.name : 0;
		at = row.name ? hash__find(&y->places[view], key) : NULL;
		if (at)
			return (int64_t)*at;
	}
	if (!row.name || vec_push(&y->rows[view], row) ||
	    hash__set(&y->places[view], key, y->rows[view].nr - 1))
		return -ENOMEM;
	return (int64_t)y->rows[view].nr - 1;
}

int64_t totals_row_of(struct live_totals *y, enum totals_view view, const char *name)
{
	const char *kept = totals_keep(y, name);

	return kept ? place(y, view, (uintptr_t)kept, (struct totals_row){.name = kept}) : -ENOMEM;
}

int64_t totals_thread_row(struct live_totals *y, int64_t pid, uint32_t tid, const char *comm)
{
	struct totals_row row = {.name = totals_keep(y, comm), .pid = pid, .tid = tid};

	return place(y, TOTALS_THREADS, hash_mix((uint64_t)pid << 32 ^ tid), row);
}

void totals_add(struct live_totals *y, enum totals_view view, int64_t row, enum totals_value value,
		uint64_t n)
{
	for (int span = 0; span < TOTALS_SPANS; span++)
		y->rows[view].items[row].values[span][value] += n;
}
