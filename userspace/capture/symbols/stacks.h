/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Stacks of a capture. Each frame gets a number and stands for one line of one function; each stack
 * gets a number too. A recording gets those that its events refer to.
 */
#ifndef GP_CAPTURE_SYMBOLS_STACKS_H
#define GP_CAPTURE_SYMBOLS_STACKS_H

#include "base/hash.h"
#include "base/intern.h"
#include "base/vec.h"
#include "capture/recordings/segment.h"
#include "capture/symbols/mixed_stacks.h"
#include "capture/symbols/names.h"
#include "wire.h"

struct python_codes;

struct numbered_frame {
	struct recording_frame frame;
	uint32_t op;	/* number of the name of the operator that it is one of; 0: none */
	uint32_t scope; /* enum gp_op_scope */
	struct recording_line *lines; /* NULL: not known */
	uint32_t lines_nr;
};

/* Stacks by their numbers. */
struct stack_numbers {
	struct hash number_of;	 /* source and its id of a stack -> number of the stack */
	uint32_t first, last;	 /* numbers that may be given out */
	struct kept_stacks kept; /* by number, counted from the first */
};

struct stacks {
	const struct segments *segments; /* borrowed */
	const struct names *names;	 /* of operators, borrowed */
	struct intern *texts;
	struct hash frame_of;		   /* hash of what a Python frame shows -> its number */
	VEC(struct numbered_frame) frames; /* by number less 1 */
	struct stack_numbers now, before;  /* before: of the last turn but one */
	uint32_t stacks_nr;		   /* the last number that was given out */
	uint64_t incomplete_nr;	  /* stacks with a frame that could not be named, or too many */
	uint64_t numbers_lost_nr; /* times a stack found no place: there are too many */
};

/* 0 or -ENOMEM. */
int stacks__init(struct stacks *s, const struct segments *segments, const struct names *names);
void stacks__done(struct stacks *s);

/* The number of a source's stack `id`, whether or not it was put before. 0: there is none, or
 * (counted) no number is left; or -errno. */
int64_t stacks__number(struct stacks *s, uint32_t source, uint32_t id);

/* Nothing more comes from this source: what it called its stacks is forgotten. */
void stacks__forget(struct stacks *s, uint32_t source);

/* The stack of this number. False: it is not known. */
bool stacks__get(const struct stacks *s, uint32_t number, struct frame_list *ret_list);

/* A recording begins in which all sources tell of their stacks anew: what was told before the last
 * turn is forgotten. Numbers come again, but never in two recordings one of which follows the
 * other.
 */
void stacks__poll(struct stacks *s);

/* An event of this recording refers to the stack: tells it now, or when it is put. 0 or -errno. */
int stacks__emit(struct stacks *s, struct segment *to, uint32_t number);

/* Takes one stack of `source`. `codes` NULL: no frame can be named. `event` has `bytes` bytes, of
 * which nothing but that they hold its head is believed. 0, -EBADMSG if it is no stack, or -errno.
 */
int stacks__put(struct stacks *s, struct python_codes *codes, uint32_t source,
		const struct gp_ev_stack *event, size_t bytes);

/* A new frame, copied. Its number; 0 if there are too many; or -errno. */
int64_t stacks__add_frame(struct stacks *s, const struct recording_frame *frame);

/* Of a frame that no recording has been told of yet: it is one of the operator `op`, a number of
 * the names. */
void stacks__set_op(struct stacks *s, uint32_t frame, uint32_t op, uint32_t scope);

/* Where a frame is in its source, for those recordings too that have been told of it: see
 * recording_writer__frame_lines(). Texts are copied. 0 or -errno. */
int stacks__set_lines(struct stacks *s, uint32_t frame, const struct recording_line *lines,
		      size_t nr);

/* Takes the stack of this number, and tells it to the recordings that have referred to it. 0 or
 * -errno. */
int stacks__keep(struct stacks *s, uint32_t number, const struct frame_list *list);

#endif /* GP_CAPTURE_SYMBOLS_STACKS_H */
