/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Frames as torch.profiler writes them: "train.py(41): step". Private to this room.
 */
#ifndef GP_OUTPUT_STACK_TEXT_H
#define GP_OUTPUT_STACK_TEXT_H

#include "base/buf.h"
#include "recording/recording.h"

/* Appends the frame of this id. */
void stack_text_frame(struct buf *out, const struct recording *rec, uint32_t frame);

/* Appends it with what separates frames (space, tab, line end, ';') as '_'. */
void stack_text_folded(struct buf *out, const struct recording *rec, uint32_t frame);

/* "[truncated]" or "[incomplete]", which stand for the outermost frames of a stack that is not
 * whole; NULL if it is. `flags` are enum gp_stack_flags. */
const char *stack_text_mark(uint32_t flags);

#endif /* GP_OUTPUT_STACK_TEXT_H */
