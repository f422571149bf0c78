/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Operators and threads from samples. GPU work is measured, and not here.
 */
#include "output/summary/live_totals_parts.h"

#include <errno.h>

#include "base/banned.h"
#include "base/cleanup.h"
#include "timeline/analysis/sample_table.h"

static void cleanup_table(struct sample_table **t)
{
	sample_table__free(*t);
}

int totals_add_sampled_ops(struct live_totals *y, const struct timeline *t)
{
	CLEANUP(cleanup_table) struct sample_table *table = NULL;
	const struct sample_table_options options = {.group = SAMPLE_BY_OP};
	int err = t->sampled ? sample_table__new(t, &options, &table) : 0;

	if (err || !table)
		return err;
	for (int span = 0; span < TOTALS_SPANS; span++)
		y->samples_nr[span] += table->all.nr;
	for (size_t i = 0; i < table->rows.nr; i++) {
		const struct sample_row *r = &table->rows.items[i];
		int64_t row = totals_row_of(y, TOTALS_OPS, r->name);

		if (row < 0)
			return (int)row;
		totals_add(y, TOTALS_OPS, row, TOTALS_SAMPLES, r->total.nr);
		totals_add(y, TOTALS_OPS, row, TOTALS_SELF_CPU_NS, r->self.ns);
		totals_add(y, TOTALS_OPS, row, TOTALS_CPU_NS, r->total.ns);
		totals_add(y, TOTALS_OPS, row, TOTALS_OFF_NS, r->off.ns);
	}
	return 0;
}

void totals_add_sampled_threads(struct live_totals *y, const struct timeline *t,
				const int64_t *rows)
{
	for (size_t i = 0; i < t->samples.nr; i++) {
		const struct tl_sample *s = &t->samples.items[i];

		if (!(s->flags & GP_SAMPLE_RUNNING))
			continue;
		totals_add(y, TOTALS_THREADS, rows[s->thread], TOTALS_SAMPLES, s->nr);
		if (t->sampled_stacks.items[s->stack].ops_nr)
			totals_add(y, TOTALS_THREADS, rows[s->thread], TOTALS_CPU_NS, s->weight_ns);
	}
}
