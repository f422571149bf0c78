/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The kernel's frames of samples, by function. Kernel addresses are never written.
 */
#ifndef GP_CAPTURE_SYMBOLS_KERNEL_FRAMES_H
#define GP_CAPTURE_SYMBOLS_KERNEL_FRAMES_H

#include "base/hash.h"
#include "capture/symbols/stacks.h"
#include "inspect/kernel/kallsyms.h"

/* What stands for the kernel's functions whose names cannot be had. */
#define KERNEL_FRAME_UNKNOWN "[kernel]"

/* All zero is an empty one. */
struct kernel_frames {
	struct kallsyms *symbols; /* NULL: not read yet, or cannot be */
	bool asked;
	struct hash frame_of; /* address of the function, 0: not known -> number of the frame */
};

void kernel_frames__done(struct kernel_frames *k);

/* Appends the frames of so many addresses to the list; those that have no name one after the other
 * are one frame. 0 or -ENOMEM. */
int kernel_frames__add(struct kernel_frames *k, struct stacks *s, const __u64 *addresses,
		       uint32_t nr, struct frame_list *list);

#endif /* GP_CAPTURE_SYMBOLS_KERNEL_FRAMES_H */
