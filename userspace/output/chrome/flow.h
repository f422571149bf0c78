/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Pairs of forward and backward ops that have an arrow. Private to this room.
 */
#ifndef GP_OUTPUT_CHROME_FLOW_H
#define GP_OUTPUT_CHROME_FLOW_H

#include "base/hash.h"
#include "timeline/model/timeline.h"

/* Maps each forward op to the backward op of its arrow: the first to end if there are several, as
 * in Kineto. 0 or -ENOMEM. */
int flow_find(const struct timeline *t, struct hash *backward_of);

/* Whether an arrow begins at this op, or ends at it (and began at its forward op). */
bool flow_begins(const struct hash *backward_of, uint32_t op);
bool flow_ends(const struct timeline *t, const struct hash *backward_of, uint32_t op);

#endif /* GP_OUTPUT_CHROME_FLOW_H */
