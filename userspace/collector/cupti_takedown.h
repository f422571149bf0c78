/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * How CUPTI is given back. One that is only let go of leaves calls of CUDA slower for as long as
 * the process lives (on an H200 with CUDA 13.0 an operator that launches one kernel took 9.6
 * to 11.1 instead of 7.6 us); one that is taken down does not. That may only be done at the exit of
 * a call of CUDA, so the first that comes by does it, on a thread of the target; and never where
 * CUDA graphs are in play: there it was seen to corrupt the target's heap. If none comes by, or one
 * that has to do with graphs, or such calls have come, or may have come, while CUPTI was ours, it
 * is let go of. A capture that has begun before CUPTI was ours and is not over yet cannot be seen.
 *
 * It is not left to a call that may come much later: until then CUPTI would be nobody else's, and
 * torch.profiler would have no GPU times.
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

/* Gives CUPTI back, which may take a second. False: a thread is stopped within it; the library must
 * stay. */
bool cupti_takedown__give_back(void);

/* Whether a thread is in it still. */
bool cupti_takedown__is_at_work(void);

/* The process ends: nothing is done any more. Waits for a thread that is at work, for two seconds
 * at most. */
void cupti_takedown__exit(void);

/* In a fork's child. */
void cupti_takedown__forget(void);

#endif /* GP_COLLECTOR_CUPTI_TAKEDOWN_H */
