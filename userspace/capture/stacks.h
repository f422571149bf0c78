/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Stacks of a capture on their way into the recording: each frame gets a number, is written when it
 * is first used, and stands for one line of one function. Private to this room.
 */
#ifndef GP_CAPTURE_STACKS_H
#define GP_CAPTURE_STACKS_H

#include "base/hash.h"
#include "capture/mixed_stacks.h"
#include "recording/recording.h"
#include "wire.h"

struct python_codes;

/* Who numbers names, inputs and stacks: the kernel's probes, then the collectors by process. */
#define SOURCE_KERNEL	    0
#define SOURCE_GUEST(index) (1u + (index))

/* All zero is an empty one. */
struct stacks {
	struct hash frame_of;  /* process, code and instruction, mixed -> number of the frame */
	struct hash number_of; /* source and its id of a stack -> number of the stack */
	uint32_t frames_nr;    /* numbered 1, 2, ... */
	uint32_t stacks_nr;    /* likewise */
	bool keep;	       /* set before the first: native stacks will refer to the kernel's */
	struct kept_stacks kept;  /* by the kernel's ids */
	uint64_t incomplete_nr;	  /* stacks with a frame that could not be named, or too many */
	uint64_t numbers_lost_nr; /* times a stack got no number: there are too many */
};

void stacks__done(struct stacks *s);

/* The recording's number of a source's stack `id`, whether or not it was put before. 0: there is
 * none, or (counted) no number is left; or -errno. */
int64_t stacks__number(struct stacks *s, uint32_t source, uint32_t id);

/* Writes one stack of `source` and its new frames. `codes` NULL: no frame can be named. `event` has
 * `bytes` bytes, of which nothing but that they hold its head is believed. 0, -EBADMSG if it is no
 * stack, or a writer's error. */
int stacks__put(struct stacks *s, struct recording_writer *w, struct python_codes *codes,
		uint32_t source, const struct gp_ev_stack *event, size_t bytes);

#endif /* GP_CAPTURE_STACKS_H */
