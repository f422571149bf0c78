/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Native stacks of a capture. Where Python's frames are wanted too, they replace the frames of the
 * interpreter that runs them.
 */
#ifndef GP_CAPTURE_SYMBOLS_NATIVE_STACKS_H
#define GP_CAPTURE_SYMBOLS_NATIVE_STACKS_H

#include "base/buf.h"
#include "base/hash.h"
#include "base/vec.h"
#include "capture/symbols/frame_lines.h"
#include "capture/symbols/kernel_frames.h"
#include "capture/symbols/native_code.h"
#include "capture/symbols/op_frames.h"
#include "capture/symbols/stacks.h"

/* One whose Python stack has not been told of yet: another thread is about to. */
struct waiting_stack {
	uint32_t stack_id;
	uint32_t python_id;
	uint32_t flags; /* as the kernel has told it: enum gp_stack_flags */
	struct frame_list frames;
};

/* All zero is an empty one. */
struct native_stacks {
	struct native_codes *codes; /* made at first use */
	struct hash frame_of;	    /* module and address, mixed -> number of the frame */
	struct buf text;
	struct op_frames ops;
	struct kernel_frames kernel;
	struct frame_lines lines;
	VEC(struct waiting_stack) waiting;
};

void native_stacks__done(struct native_stacks *n);

/* A recording begins: see native_codes__poll(). */
void native_stacks__poll(struct native_stacks *n, const struct file_users *users);

/* Takes one stack into `s`, with its new frames. `event` has `bytes` bytes, of which nothing but
 * that they hold its head is believed. 0, -EBADMSG if it is no stack, or -errno. */
int native_stacks__put(struct native_stacks *n, struct stacks *s, const struct target_process *p,
		       const struct gp_ev_native *event, size_t bytes);

/* The Python stack `python_id` has been told of: takes what waits for it. `python_id` 0: the
 * capture ends, so takes all that still wait, marked as not whole. 0 or -errno. */
int native_stacks__release(struct native_stacks *n, struct stacks *s, uint32_t python_id);

#endif /* GP_CAPTURE_SYMBOLS_NATIVE_STACKS_H */
