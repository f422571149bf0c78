/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Closes the links of processes that have ended, in a thread: the kernel waits for every CPU with
 * each, some hundredths of a second, in which others would be born and die unseen. Nothing is hit
 * there any more, so nobody needs to know when it is done.
 */
#ifndef GP_PROBE_SESSION_LINK_CLOSER_H
#define GP_PROBE_SESSION_LINK_CLOSER_H

#include "probe/session/link.h"

struct link_closer;

/* NULL: out of memory. To be given to link_closer__free(), which closes what is left; that takes
 * NULL, too. */
struct link_closer *link_closer__new(void);
void link_closer__free(struct link_closer *c);

/* Takes all out of the set; where there can be no thread they are closed when it returns. */
void link_closer__take(struct link_closer *c, struct link_set *set);

#endif /* GP_PROBE_SESSION_LINK_CLOSER_H */
