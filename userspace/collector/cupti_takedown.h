/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * How CUPTI is given back. One that is only let go of leaves calls of CUDA slower for as long as
 * the process lives (on an H200 with CUDA 13.0 an operator that launches one kernel took 9.6
 * to 11.1 instead of 7.6 us); one that is taken down does not. That may only be done at the exit of
 * a call of CUDA: the collector's thread makes one, of its own. While a call of another thread is
 * under way CUPTI waits for its end, as it was seen to do for 0.7 s of a thread that waited for the
 * GPU; so it is not done in a call of the target's, whose thread would wait with it.
 *
 * It is never done where CUDA graphs are in play: a target that captured some has died, its heap
 * corrupt, in the middle of it; whether of it is not known. If calls that have to do with graphs
 * have come, or may have come, while CUPTI was ours, it is let go of. A capture that has begun
 * before CUPTI was ours and is not over yet cannot be seen.
 */
#ifndef GP_COLLECTOR_CUPTI_TAKEDOWN_H
#define GP_COLLECTOR_CUPTI_TAKEDOWN_H

#include "collector/cupti_library.h"

#include <stdbool.h>

/* What CUPTI calls for a subscriber of ours: see cupti_takedown__look(). */
void cupti_takedown__on_call(void *arg, uint32_t domain, uint32_t cbid, const void *data);

/* CUPTI is ours, by a subscription with cupti_takedown__on_call(). */
void cupti_takedown__begin(const struct cupti_library *l, void *subscriber);

/* A call or work of graphs was among the records, or may have come unseen. Any thread. */
void cupti_takedown__note_graphs(void);

/* Looks at each call of CUDA from now on; called before the records, which tell of the same calls,
 * are switched off. */
void cupti_takedown__look(void);

/* Gives CUPTI back, by the collector's thread, which may wait as long as another is in a call. */
void cupti_takedown__give_back(void);

/* In a fork's child. */
void cupti_takedown__forget(void);

#endif /* GP_COLLECTOR_CUPTI_TAKEDOWN_H */
