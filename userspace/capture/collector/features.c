/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Collection on and off.
 */
#include "capture/collector/features.h"

void set_features(struct capture *c, uint32_t features, bool kernel)
{
	for (size_t i = 0; i < c->processes.nr; i++)
		if (!c->processes.items[i]->end && c->processes.items[i]->collector)
			collector_client__only(c->processes.items[i]->collector, features);
	probe_session__pause(c->probes, !kernel);
}

bool collect_follows(const struct capture *c)
{
	for (size_t i = 0; i < c->processes.nr; i++)
		if (!c->processes.items[i]->end && c->processes.items[i]->collector &&
		    !collector_client__follows(c->processes.items[i]->collector))
			return false;
	return true;
}
