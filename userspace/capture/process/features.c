/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Switches collection on and off.
 */
#include "capture/process/features.h"

/* NULL: it has none, or the process has ended. */
static struct collector_client *collector_of(const struct traced_process *m)
{
	return m->end ? NULL : m->collector;
}

void features_set(const struct process_set *s, uint32_t features, bool kernel)
{
	for (size_t i = 0; i < s->table.nr; i++)
		if (collector_of(s->table.items[i]))
			collector_client__only(collector_of(s->table.items[i]), features);
	probe_session__pause(s->probes, !kernel);
}

bool features_follow(const struct process_set *s)
{
	for (size_t i = 0; i < s->table.nr; i++)
		if (collector_of(s->table.items[i]) &&
		    !collector_client__follows(collector_of(s->table.items[i])))
			return false;
	return true;
}

unsigned int features_active_nr(const struct process_set *s, uint32_t features)
{
	unsigned int nr = 0;

	for (size_t i = 0; i < s->table.nr; i++) {
		const struct collector_client *g = collector_of(s->table.items[i]);

		nr += g && (collector_client__active(g) & features);
	}
	return nr;
}

bool features_show_steps(const struct process_set *s)
{
	const struct collector_client *g = s->table.nr ? collector_of(s->table.items[0]) : NULL;

	return g && (collector_client__active(g) & (GP_FEATURE_OPS | GP_FEATURE_STEPS));
}
