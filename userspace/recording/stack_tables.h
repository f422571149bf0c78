/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Frames and stacks as the reader keeps them. Private to this room.
 */
#ifndef GP_RECORDING_STACK_TABLES_H
#define GP_RECORDING_STACK_TABLES_H

#include "base/hash.h"
#include "base/intern.h"
#include "base/vec.h"
#include "recording/cursor.h"
#include "recording/recording.h"

struct stack_entry {
	size_t at; /* of its first frame in frame_ids */
	uint32_t nr;
	uint32_t flags;
};

/* The tables. All zero is empty. */
struct stack_tables {
	VEC(struct recording_frame) frames;
	struct hash frame_of; /* id -> index */
	VEC(struct stack_entry) stacks;
	struct hash stack_of; /* id -> index */
	VEC(uint32_t) frame_ids;
	struct hash op_of;		  /* id of a frame -> name and, above it, scope */
	VEC(struct recording_line) lines; /* the lines of one frame are adjacent */
	VEC(uint32_t) line_frames;	  /* for each line, the id of its frame */
	struct hash lines_of; /* id of a frame -> its first line; in the low 8 bits how many */
};

void stack_tables__done(struct stack_tables *t);

/* Each parses the payload of one chunk. 0, -EBADMSG if it is damaged, or -ENOMEM. */
int stack_tables__parse_frames(struct stack_tables *t, struct intern *texts, struct cursor *c);
int stack_tables__parse_native_frames(struct stack_tables *t, struct intern *texts,
				      struct cursor *c);
int stack_tables__parse_stacks(struct stack_tables *t, struct cursor *c);
int stack_tables__parse_frame_ops(struct stack_tables *t, struct cursor *c);
int stack_tables__parse_frame_lines(struct stack_tables *t, struct intern *texts, struct cursor *c);
int stack_tables__parse_first_lines(struct stack_tables *t, struct cursor *c);

/* Call after the last chunk: puts inlined functions into the stacks as frames, unless a stack
 * became too long. 0 or -ENOMEM. */
int stack_tables__expand(struct stack_tables *t);

/* See recording__frame(), recording__frame_op(), recording__frame_lines() and recording__stack().
 */
const struct recording_line *stack_tables__frame_lines(const struct stack_tables *t, uint32_t id,
						       size_t *ret_nr);
bool stack_tables__frame_op(const struct stack_tables *t, uint32_t id, uint32_t *ret_name,
			    uint32_t *ret_scope);
struct recording_frame stack_tables__frame(const struct stack_tables *t, uint32_t id);
const uint32_t *stack_tables__stack(const struct stack_tables *t, uint32_t id, size_t *ret_nr,
				    uint32_t *ret_flags);

#endif /* GP_RECORDING_STACK_TABLES_H */
