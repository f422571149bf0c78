/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The reading end of the collector's ring (wire.h), in gpuprof. The ring lies in memory that the
 * target can write to at any moment: every position, size, id and number in it is checked, after it
 * was copied out. What does not pass is counted and left out; a ring whose positions make no sense
 * is given up.
 *
 * How a capture uses it: inject; open; want(); wait until `active` or `failed` in the status says
 * so; then drain(), again after drain_deadline_ns() at most; at the end want(0), wait until nothing
 * is active, drain(), quit(), wait for GP_COLLECTOR_INERT, free(). The losses are complete once it
 * is inert. A ring that becomes inert before it was told to quit has heard nothing from us for too
 * long (we were stopped).
 */
#ifndef GP_CAPTURE_COLLECTOR_RING_READER_H
#define GP_CAPTURE_COLLECTOR_RING_READER_H

#include "base/reason.h"
#include "wire.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct ring_reader;

/*
 * Takes one event, of a kind that events.c validates: process, tid and times are already
 * ours; a name_id was announced before (0: none), and so with inputs and stacks; the text of a
 * gp_ev_name is free of control characters and followed by a zero; what GPUs did has no tid.
 * Non-zero ends the drain; the event counts as taken.
 */
typedef int (*collector_event_fn)(const void *event, size_t bytes, void *arg);

struct collector_status {
	enum gp_collector_state state;
	uint32_t active, failed; /* enum gp_feature bits */
	uint32_t beat;
	bool broken;	   /* given up: its positions made no sense */
	char message[512]; /* terminated, control characters replaced */
};

/* Finds the ring among the descriptors of process `pid` (as gpuprof sees it) and maps it. Events
 * will carry process_index. 0 or -errno with a reason: -ENOENT there is none, -EBUSY another
 * gpuprof uses it, -EAGAIN one left behind by a gpuprof that has gone is still leaving, -EPROTO it
 * is none of ours, or of another version. */
int ring_reader__open(pid_t pid, uint16_t process_index, struct reason *why,
		      struct ring_reader **ret_ring);
/* Unmaps; no more signs of life. Does not tell the collector to quit. */
void ring_reader__free(struct ring_reader *r);

/* Where the process's CPython keeps what the collector reads of it; before GP_FEATURE_STACKS is
 * wanted. */
void ring_reader__set_python(struct ring_reader *r, const struct gp_python *python);
/* Also a CUPTI that is known to endanger the process; before GP_FEATURE_CUPTI is wanted. */
void ring_reader__take_any_cupti(struct ring_reader *r);
/* Where the collector keeps what it says of threads' stacks (see struct gp_stack_top), an address
 * in the process that nothing but a read there is to be done with; 0: nowhere. */
uint64_t ring_reader__stack_cache(const struct ring_reader *r);
/* Which features (enum gp_feature bits) are to be in force. Wakes the collector. From the first
 * call on, a thread of its own tells the collector that gpuprof is alive: without that for 3
 * seconds the collector leaves for good. */
void ring_reader__want(struct ring_reader *r, uint32_t features);
/* One sign of life, now: for whoever waits between open() and want(). */
void ring_reader__beat(struct ring_reader *r);
/* Tells the collector to leave for good. */
void ring_reader__quit(struct ring_reader *r);
/* The process has ended: what is not complete in the ring never will be. */
void ring_reader__process_gone(struct ring_reader *r);

/* Hands out all events that are complete, in the order in which their writers began. An event
 * whose writer is slow holds the later ones up; after 3 seconds of the collector's own time it is
 * counted as lost. Returns how many events were handed out, fn's non-zero result, or -EPROTO if the
 * ring was given up. Never waits. */
int ring_reader__drain(struct ring_reader *r, collector_event_fn fn, void *arg);

/* For how long it may be left alone after a drain: a quarter of the ring is filled by then, as fast
 * as that goes just now. */
uint64_t ring_reader__drain_deadline_ns(const struct ring_reader *r);

/* From here on what is lost is missing: events before this moment are wanted by nobody. */
void ring_reader__begin(struct ring_reader *r);

enum quiesce_end {
	QUIESCE_DONE = 0,     /* the collector needs it no more */
	QUIESCE_TOO_LONG = 1, /* it still does */
	QUIESCE_UNWANTED = 2, /* it had not waited any more */
};

/* Whether the collector waits for the process's other threads to be held still (enum gp_quiesce).
 * Each time it does, it is given one answer: refuse(), or give() while they are, after which it is
 * waited for, at most for limit_ms, and longer_ms in the midst of what must not be cut short. */
bool ring_reader__asks_quiesce(const struct ring_reader *r);
void ring_reader__refuse_quiesce(struct ring_reader *r);
enum quiesce_end ring_reader__give_quiesce(struct ring_reader *r, bool all_out, uint32_t limit_ms,
					   uint32_t longer_ms);

/* What the collector says of itself now, and whether the ring was given up. */
void ring_reader__status(const struct ring_reader *r, struct collector_status *ret_status);

/* What became of CUPTI: enum gp_cupti_end, as the collector says, or any number. */
uint32_t ring_reader__cupti_end(const struct ring_reader *r);

/* How long the callbacks took that the collector has timed, and how many those were: what it says,
 * any numbers. */
void ring_reader__timed(const struct ring_reader *r, uint64_t *ret_ns, uint64_t *ret_nr);

/* CPU time of the collector's own thread, as it says: any number. */
uint64_t ring_reader__thread_cpu_ns(const struct ring_reader *r);

/* Adds what went missing, on the collector's side and here. Call it once, at the end. */
void ring_reader__losses(const struct ring_reader *r, uint64_t losses[GP_LOSS_NR]);

#endif /* GP_CAPTURE_COLLECTOR_RING_READER_H */
