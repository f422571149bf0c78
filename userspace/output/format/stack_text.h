/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Frames as torch.profiler writes them: "train.py(41): step". A native frame without known source
 * is "libtorch_cpu.so: at::native::add". An inlined function ends in " (inlined)", a function of
 * the kernel in " [k]". Private to this room.
 */
#ifndef GP_OUTPUT_FORMAT_STACK_TEXT_H
#define GP_OUTPUT_FORMAT_STACK_TEXT_H

#include "base/buf.h"
#include "base/json_writer.h"
#include "timeline/model/timeline.h"

/* Marks the stack of a forward op where it stands for the backward op's: at its innermost frame, or
 * as the innermost. */
#define STACK_TEXT_BACKWARD "[backward]"

/* Appends a frame's function or, where that is not known, its address. */
void stack_text_function(struct buf *out, const struct recording_frame *f);

/* Appends the frame of this id. */
void stack_text_frame(struct buf *out, const struct recording *rec, uint32_t frame);

/* The same without the line in native code, so that each function has one text. */
void stack_text_by_function(struct buf *out, const struct recording *rec, uint32_t frame);

/* Appends that as a frame of a folded stack. `scratch` is memory to work in; the caller checks its
 * error. */
void stack_text_folded(struct buf *out, struct buf *scratch, const struct recording *rec,
		       uint32_t frame);

/* Appends the frame of this id as an item of a list with semicolons between; `scratch` as above. */
void stack_text_in_list(struct buf *out, struct buf *scratch, const struct recording *rec,
			uint32_t frame);

/* Writes an array of frames. */
void stack_text_json(struct json_writer *j, const struct recording *rec, const uint32_t *frames,
		     size_t nr);

/* Appends a whole stack, its mark and the outermost frame first, with semicolons between. */
void stack_text_all(struct buf *out, const struct recording *rec, const struct tl_stack *s);

/* Appends the name of a call as torch.profiler has it: "train.py(38): step", with the line where
 * the function begins, or "nn.Module: Linear_0". */
void stack_text_call(struct buf *out, const struct timeline *t, const struct tl_python_call *call);

/* "[truncated]" or "[incomplete]", which stand for the outermost frames of a stack that is not
 * whole; NULL if it is. `flags` are enum gp_stack_flags. */
const char *stack_text_mark(uint32_t flags);

#endif /* GP_OUTPUT_FORMAT_STACK_TEXT_H */
