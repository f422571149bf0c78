/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Sums over processes. Those that are gone were added to process_counts.
 */
#include "capture/process/process_totals.h"

void process_totals__losses(const struct process_set *s, uint64_t losses[GP_LOSS_NR])
{
	losses[GP_LOSS_COLLECTOR_LEFT] += s->counts.left_nr;
	losses[GP_LOSS_CHILD_LATE] += s->counts.child_late_nr;
	losses[GP_LOSS_CHILD_MISSED] += s->counts.child_missed_nr;
	for (size_t i = 0; i < s->table.nr; i++)
		if (s->table.items[i]->collector)
			collector_client__losses(s->table.items[i]->collector, losses);
	for (int i = 0; i < GP_LOSS_NR; i++)
		losses[i] += s->counts.losses[i];
}

struct callback_cost process_totals__timed(const struct process_set *s)
{
	struct callback_cost timed = s->counts.timed;

	for (size_t i = 0; i < s->table.nr; i++)
		if (s->table.items[i]->collector)
			collector_client__timed(s->table.items[i]->collector, &timed);
	return timed;
}

uint32_t process_totals__callbacks_nr(const struct process_set *s)
{
	uint32_t nr = s->counts.callbacks_nr;

	for (size_t i = 0; i < s->table.nr; i++)
		nr += s->table.items[i]->state.callbacks;
	return nr;
}
