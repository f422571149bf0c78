/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The reading end of the collector's ring (wire.h), in gpuprof. The ring lies in memory that the
 * target can write to at any moment: every position, size, id and number in it is checked, after it
 * was copied out. What does not pass is counted and left out; a ring whose positions make no sense
 * is given up.
 *
 * How a capture uses it: inject; open; want(); wait until `active` or `failed` in the status says
 * so; then drain(), again after patience_ns() at most; at the end want(0), wait until nothing is
 * active, drain(), quit(), wait for GP_COLLECTOR_INERT, free(). The losses are complete once it is
 * inert. A ring that becomes inert before it was told to quit has heard nothing from us for too
 * long (we were stopped).
 */
#ifndef GP_CAPTURE_COLLECTOR_RING_H
#define GP_CAPTURE_COLLECTOR_RING_H

#include "base/reason.h"
#include "wire.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct collector_ring;

/*
 * Takes one event, of a kind that collector_events.c judges: process, tid and times are already
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
int collector_ring__open(pid_t pid, uint16_t process_index, struct reason *why,
			 struct collector_ring **ret_ring);
/* Unmaps; no more signs of life. Does not tell the collector to quit. */
void collector_ring__free(struct collector_ring *r);

/* Where the process's CPython keeps what the collector reads of it; before GP_FEATURE_STACKS is
 * wanted. */
void collector_ring__set_python(struct collector_ring *r, const struct gp_python *python);
/* Also a CUPTI that is known to endanger the process; before GP_FEATURE_CUPTI is wanted. */
void collector_ring__take_any_cupti(struct collector_ring *r);
/* Where the collector keeps what it says of threads' stacks (see struct gp_stack_top), an address
 * in the process that nothing but a read there is to be done with; 0: nowhere. */
uint64_t collector_ring__stack_tops(const struct collector_ring *r);
/* Which features (enum gp_feature bits) are to be in force. Wakes the collector. From the first
 * call on, a thread of its own tells the collector that gpuprof is alive: without that for 3
 * seconds the collector leaves for good. */
void collector_ring__want(struct collector_ring *r, uint32_t features);
/* One sign of life, now: for whoever waits between open() and want(). */
void collector_ring__beat(struct collector_ring *r);
/* Tells the collector to leave for good. */
void collector_ring__quit(struct collector_ring *r);
/* The process has ended: what is not complete in the ring never will be. */
void collector_ring__process_gone(struct collector_ring *r);

/* Hands out all events that are complete, in the order in which their writers began. An event
 * whose writer is slow holds the later ones up; after 3 seconds of the collector's own time it is
 * counted as lost. Returns how many events were handed out, fn's non-zero result, or -EPROTO if the
 * ring was given up. Never waits. */
int collector_ring__drain(struct collector_ring *r, collector_event_fn fn, void *arg);

/* For how long it may be left alone after a drain: a quarter of the ring is filled by then, as fast
 * as that goes just now. */
uint64_t collector_ring__patience_ns(const struct collector_ring *r);

/* From here on what is lost is missing: events before this moment are wanted by nobody. */
void collector_ring__begin(struct collector_ring *r);

enum hold_end {
	HOLD_DONE = 0,	   /* the collector needs it no more */
	HOLD_TOO_LONG = 1, /* it still does */
	HOLD_UNWANTED = 2, /* it had not waited any more */
};

/* Whether the collector waits for the process's other threads to be held still (enum gp_hold). Each
 * time it does, it is given one answer: refuse(), or give() while they are, after which it is
 * waited for, at most for limit_ms, and longer_ms in the midst of what must not be cut short. */
bool collector_ring__asks_hold(const struct collector_ring *r);
void collector_ring__refuse_hold(struct collector_ring *r);
enum hold_end collector_ring__give_hold(struct collector_ring *r, bool all_out, uint32_t limit_ms,
					uint32_t longer_ms);

/* What the collector says of itself now, and whether the ring was given up. */
void collector_ring__status(const struct collector_ring *r, struct collector_status *ret_status);

/* What became of CUPTI: enum gp_cupti_end, as the collector says, or any number. */
uint32_t collector_ring__cupti_end(const struct collector_ring *r);

/* How long the callbacks took that the collector has timed, and how many those were: what it says,
 * any numbers. */
void collector_ring__timed(const struct collector_ring *r, uint64_t *ret_ns, uint64_t *ret_nr);

/* CPU time of the collector's own thread, as it says: any number. */
uint64_t collector_ring__thread_cpu_ns(const struct collector_ring *r);

/* Adds what went missing, on the collector's side and here. Call it once, at the end. */
void collector_ring__losses(const struct collector_ring *r, uint64_t losses[GP_LOSS_NR]);

#endif /* GP_CAPTURE_COLLECTOR_RING_H */
