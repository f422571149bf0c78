/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Collection on and off.
 */
#include "capture/collect.h"

void collect_only(struct capture *c, uint32_t features, bool kernel)
{
	for (size_t i = 0; i < c->members.nr; i++)
		if (!c->members.items[i]->end && c->members.items[i]->guest)
			guest__only(c->members.items[i]->guest, features);
	probe_session__pause(c->probes, !kernel);
}

bool collect_follows(const struct capture *c)
{
	for (size_t i = 0; i < c->members.nr; i++)
		if (!c->members.items[i]->end && c->members.items[i]->guest &&
		    !guest__follows(c->members.items[i]->guest))
			return false;
	return true;
}
