/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Estimates of the whole, each with its standard error beside it.
 */
#include "output/summary/table_estimates.h"

#include <math.h>
#include <stdio.h>

#include "base/banned.h"
#include "output/format/text_cells.h"

size_t table_estimate_columns(const struct table *table)
{
	if (!table->has_estimates)
		return 0;
	return table->has_cuda_time ? 6 : 4;
}

static void cell(struct buf *out, const char *text)
{
	text_cell(out, text, TEXT_COLUMN_WIDTH);
}

static void error_cell(struct buf *out, double error, const char *text)
{
	cell(out, isnan(error) ? "?" : text);
}

static void time_cells(struct buf *out, const struct estimate *ns, const char *unit)
{
	cell(out, text_time(ns->value / 1000, unit).text);
	error_cell(out, ns->error, text_time(ns->error / 1000, unit).text);
}

void table_estimate_cells(struct buf *out, const struct table *table, const struct table_row *r,
			  const char *unit)
{
	const struct estimate *calls = &r->estimates[ESTIMATE_CALLS];
	char text[32];

	if (!table->has_estimates)
		return;
	time_cells(out, &r->estimates[ESTIMATE_SELF_CPU_NS], unit);
	if (table->has_cuda_time)
		time_cells(out, &r->estimates[ESTIMATE_SELF_CUDA_NS], unit);
	(void)snprintf(text, sizeof(text), "%.0f", calls->value);
	cell(out, text);
	(void)snprintf(text, sizeof(text), calls->error < 10 ? "%.1f" : "%.0f", calls->error);
	error_cell(out, calls->error, text);
}

void table_estimate_titles(struct buf *out, const struct table *table)
{
	if (!table->has_estimates)
		return;
	cell(out, "est Self CPU");
	cell(out, "+/-");
	if (table->has_cuda_time) {
		cell(out, "est SelfCUDA");
		cell(out, "+/-");
	}
	cell(out, "est Calls");
	cell(out, "+/-");
}

void table_estimate_origin(struct buf *out, const struct table *table)
{
	const struct table_windows *w = &table->windows;

	if (!table->has_estimates)
		return;
	buf__printf(out, "Estimated from %zu window%s", w->nr, w->nr == 1 ? "" : "s");
	if (w->all_steps_nr)
		buf__printf(out, " with %llu of %llu steps", (unsigned long long)w->steps_nr,
			    (unsigned long long)w->all_steps_nr);
	buf__printf(out,
		    ", %.2f %% of the time: columns 'est' are of the whole, +/- one "
		    "standard error; all others of the windows alone\n",
		    100 * w->share_of_time);
	if (w->inside_ns)
		buf__printf(out,
			    "Unwatched, the windows would have been %.0f %% shorter: all times, "
			    "also the estimated ones, have that in them\n",
			    100 * (double)w->inside_ns / (double)w->ns);
}

void table_estimate_total(struct buf *out, const struct table *table, const char *unit)
{
	const struct estimate *e = &table->windows.self_cpu_total_ns;

	if (!table->has_estimates)
		return;
	buf__printf(out, "Self CPU time total, estimated: %s",
		    text_time(e->value / 1000, unit).text);
	if (!isnan(e->error))
		buf__printf(out, " +/- %s", text_time(e->error / 1000, unit).text);
	buf__char(out, '\n');
}
