/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Python's frames among the native ones, and stacks by their number, as numbered frames.
 */
#ifndef GP_CAPTURE_SYMBOLS_MIXED_STACKS_H
#define GP_CAPTURE_SYMBOLS_MIXED_STACKS_H

#include "base/vec.h"
#include "wire.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The kernel's, native ones and Python's together. */
#define FRAME_LIST_MAX (GP_KERNEL_FRAMES + 2 * GP_STACK_FRAMES)

/* Frames of a stack, innermost first. */
struct frame_list {
	uint32_t numbers[FRAME_LIST_MAX];
	bool marks[FRAME_LIST_MAX]; /* Python: outermost of one call of the interpreter;
					    native: such a call */
	uint32_t nr;
	uint32_t flags; /* enum gp_stack_flags */
};

/* All zero is an empty one. */
struct kept_stacks {
	VEC(struct kept_stack {
		size_t at; /* in frames */
		uint32_t nr;
		uint32_t flags;
		bool known;
	})
	stacks;		      /* by number */
	VEC(uint32_t) frames; /* the mark in the highest bit */
};

void kept_stacks__done(struct kept_stacks *k);

/* 0, -EEXIST if there is one of this number, -ENOSPC if there are too many, or -ENOMEM. */
int kept_stacks__add(struct kept_stacks *k, uint32_t number, const struct frame_list *stack);

/* False: there is no such stack. */
bool kept_stacks__get(const struct kept_stacks *k, uint32_t number, struct frame_list *ret_stack);

/*
 * Puts Python's frames into `native`: each call of the interpreter gives way to the frames that it
 * runs. Where the two do not match, or there are Python frames further out than the native ones
 * reach, nothing is left out, and the stack is marked.
 */
void mix_stacks(struct frame_list *native, const struct frame_list *python);

#endif /* GP_CAPTURE_SYMBOLS_MIXED_STACKS_H */
