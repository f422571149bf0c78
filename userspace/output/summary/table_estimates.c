/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Writes the lines about estimates: where they come from, and the total of CPU time.
 */
#include "output/summary/table_estimates.h"

#include <math.h>

#include "base/banned.h"
#include "output/format/text_cells.h"

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
