/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Questions of every reader of events. Calls no reader. Private to this room.
 */
#ifndef GP_TIMELINE_READ_CONTEXT_H
#define GP_TIMELINE_READ_CONTEXT_H

#include "timeline/model/build.h"

/* Reads the recording's processes into the timeline. 0 or -errno. */
int build_processes(struct build *b, const struct recording *rec);

/* Sets the window of a recording by steps, which holds more than its window: see FORMAT.md. In
 * others everything is in the window. */
void build_limits(struct build *b);

/* The index of the event's process or thread in the timeline, which is made if there is none.
 * TL_NONE with b->err set: out of memory. */
uint32_t build_process_of(struct build *b, const struct gp_ev_head *head);
uint32_t build_thread_of(struct build *b, const struct gp_ev_head *head);

/* The text (NULL: ""), interned: it lives as long as the timeline. NULL with b->err set: out of
 * memory. */
const char *build_intern(struct build *b, const char *text);

/* Whether this span lies in the window of a recording by steps, and in the windows of a budget. */
bool build_in_window(const struct build *b, uint64_t from_ns, uint64_t to_ns);

/* Extends the time that the events span. */
void build_extend_time(struct build *b, uint64_t from_ns, uint64_t to_ns);

#endif /* GP_TIMELINE_READ_CONTEXT_H */
