/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Closes the links of processes that have ended, in a thread. Each close takes some hundredths of a
 * second, as the kernel waits for every CPU; a capture that waited for it would miss short-lived
 * processes. Nothing hits these probes any more, so nobody needs to know when they are closed.
 */
#ifndef GP_PROBE_SESSION_LINK_CLOSER_H
#define GP_PROBE_SESSION_LINK_CLOSER_H

#include "probe/session/link.h"

struct link_closer;

/* Creates a closer; NULL when out of memory. link_closer__free() closes what is left; NULL is
 * allowed. */
struct link_closer *link_closer__new(void);
void link_closer__free(struct link_closer *c);

/* Takes all descriptors out of the set. If there is no thread they are closed at once. */
void link_closer__take(struct link_closer *c, struct link_set *set);

#endif /* GP_PROBE_SESSION_LINK_CLOSER_H */
