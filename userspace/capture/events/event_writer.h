/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * One event on its way into a recording. Private to this room.
 */
#ifndef GP_CAPTURE_EVENTS_EVENT_WRITER_H
#define GP_CAPTURE_EVENTS_EVENT_WRITER_H

#include "capture/private.h"

/* Whether it is an annotation of which the end alone was looked at: see GP_FEATURE_CPU_TIME. */
static inline bool event_is_end_alone(const struct gp_ev_op *op)
{
	return op->scope == GP_SCOPE_USER && op->start_ns == op->head.time_ns;
}

/* The recording that the event belongs to, NULL: none. By steps it is that of the step in which it
 * began, otherwise that in which it ended. Of a call whose end is not seen it is the same. */
struct segment *event_segment(const struct capture *c, const void *event);

/* Takes an event of the member that `source` tells (SOURCE_KERNEL, SOURCE_COLLECTOR()): its kind is
 * known, and it is as long as that at least. Sets c->out, in which it found no place where this
 * fails. 0 or -errno. */
int event_put(struct capture *c, struct traced_process *m, uint32_t source, const void *event,
	      size_t bytes);

#endif /* GP_CAPTURE_EVENTS_EVENT_WRITER_H */
