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

/* All zero is an empty one. */
struct stacks {
	struct hash frame_of; /* process, code and instruction, mixed -> number of the frame */
	uint32_t frames_nr;   /* numbered 1, 2, ... */
	bool keep;	      /* set before the first: native stacks will refer to them */
	struct kept_stacks kept;
	uint64_t incomplete_nr; /* stacks with a frame that could not be named, or too many */
};

void stacks__done(struct stacks *s);

/* Writes one stack and its new frames. `codes` NULL: no frame can be named. `event` has `bytes`
 * bytes, of which nothing but that they hold its head is believed. 0, -EBADMSG if it is no stack,
 * or a writer's error. */
int stacks__put(struct stacks *s, struct recording_writer *w, struct python_codes *codes,
		const struct gp_ev_stack *event, size_t bytes);

#endif /* GP_CAPTURE_STACKS_H */
