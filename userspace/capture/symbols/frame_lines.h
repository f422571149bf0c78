/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Source lines of native frames, looked up when a recording ends: reading debug information takes
 * time that events cannot wait for.
 */
#ifndef GP_CAPTURE_SYMBOLS_FRAME_LINES_H
#define GP_CAPTURE_SYMBOLS_FRAME_LINES_H

#include "base/buf.h"
#include "base/vec.h"
#include "capture/symbols/native_code.h"
#include "capture/symbols/stacks.h"

/* A frame whose lines have not been looked up. */
struct waiting_frame {
	uint32_t frame;	 /* its number */
	uint32_t module; /* of native_codes */
	uint64_t address;
};

/* All zero is an empty one. */
struct frame_lines {
	VEC(struct waiting_frame) waiting;
	struct buf text;
	uint64_t left_nr; /* frames whose files tell lines that were not looked up */
};

void frame_lines__done(struct frame_lines *l);

/* A new frame. 0 or -ENOMEM. */
int frame_lines__note(struct frame_lines *l, uint32_t frame, const struct native_place *place);

/* Looks up what waits, in so much CPU time for each file; what that leaves is counted and has no
 * lines. 0 or -errno. */
int frame_lines__find(struct frame_lines *l, struct native_codes *codes, struct stacks *s,
		      uint64_t budget_ns);

#endif /* GP_CAPTURE_SYMBOLS_FRAME_LINES_H */
