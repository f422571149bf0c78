/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Requests for memory that were refused, and what held the memory at that moment. Private to this
 * room; the text of it is output_out_of_memory_text().
 */
#ifndef GP_OUTPUT_OUT_OF_MEMORY_H
#define GP_OUTPUT_OUT_OF_MEMORY_H

#include "base/buf.h"
#include "timeline/timeline.h"

/* Allocations of one op, or those made from one Python line, that were alive then. */
struct holder {
	const char *op;	       /* NULL: outside any op, or this is a line */
	const char *outermost; /* the operator it ran under, NULL as above */
	uint32_t frame;	       /* of the recording, where this is a line; 0: no stack */
	uint64_t allocations;
	int64_t bytes;
};

struct holders {
	VEC(struct holder) ops;	  /* most bytes first */
	VEC(struct holder) lines; /* the same; empty where no allocation has a stack */
	uint64_t allocations;
	int64_t bytes; /* of what was allocated since the capture began */
};

/* What the device of timeline.out_of_memory[index] held when it happened. 0 or -ENOMEM; the caller
 * calls holders__done() in either case. */
int holders__init(struct holders *h, const struct timeline *t, size_t index);
void holders__done(struct holders *h);

/* The array of JSON objects that table_json.c and memory_json.c write. 0 or -ENOMEM. */
int out_of_memory_json(struct buf *b, const struct timeline *t);

#endif /* GP_OUTPUT_OUT_OF_MEMORY_H */
