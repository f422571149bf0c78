/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Sums of a timeline's memory events, for each device of a process: its running total, its peak,
 * what was held then, and which ops allocated. The memory page and the memory JSON show them.
 */
#ifndef GP_OUTPUT_MEMORY_MEMORY_USAGE_H
#define GP_OUTPUT_MEMORY_MEMORY_USAGE_H

#include "base/buf.h"
#include "timeline/model/timeline.h"

/*
 * The allocations of one op under one outermost operator: an aten::empty below aten::conv2d and one
 * below aten::cat are two rows. Annotations do not count as outermost. Both names are borrowed from
 * the timeline; NULL: outside any op.
 */
struct memory_op {
	const char *op;
	const char *outermost;
	uint64_t allocations;
	int64_t allocated_bytes; /* all of them, freed since or not */
	int64_t largest_bytes;
	uint64_t peak_allocations; /* alive at the device's peak */
	int64_t peak_bytes;
	uint64_t end_allocations; /* alive when the capture ended */
	int64_t end_bytes;
};

struct memory_device {
	uint32_t process; /* of the timeline, or TL_NONE */
	int16_t type;	  /* enum gp_device_type */
	int16_t index;
	VEC(uint32_t) events;	   /* positions in timeline.memory, ascending */
	VEC(struct memory_op) ops; /* in order of first appearance */
	uint32_t peak;		   /* the event with the (first) highest total, or TL_NONE */
	int64_t peak_bytes;	   /* 0 without one */
	int64_t end_bytes;
	bool has_totals; /* some event carries the allocator's own totals */
	/* For TL_DEVICE_CUDA_CALLS, if PyTorch's allocator reports its totals too: the memory that
	 * CUDA gave to others since the recording began, each time the allocator reported. */
	bool has_outside;
	int64_t outside_end_bytes;
	int64_t outside_peak_bytes;
};

struct memory_usage {
	VEC(struct memory_device) devices; /* in order of first appearance */
};

/* Adds up all devices. 0 or -ENOMEM. The caller calls memory_usage__done() in either case. */
int memory_usage__init(struct memory_usage *u, const struct timeline *t);
void memory_usage__done(struct memory_usage *u);

/* Sets held[i] if timeline.memory[i] is an allocation that was alive at its device's peak. `held`
 * has an item for each event, all false before. 0 or -ENOMEM. */
int memory_held_at_peak(const struct timeline *t, bool *held);

/* "cpu", "cuda:0", the call by which CUDA itself gives memory, or "type 7:0" for other numbers of
 * c10::DeviceType: at most 24 bytes with the end. */
#define MEMORY_NAME_BYTES 24
void memory_device_name(int type, int index, char to[MEMORY_NAME_BYTES]);

/* For qsort() of struct memory_op: most bytes allocated first, or held at the peak; then by name.
 */
int memory_op_by_allocated(const void *a, const void *b);
int memory_op_by_peak(const void *a, const void *b);

struct memory_points {
	VEC(uint32_t) events; /* positions in timeline.memory, ascending */
	uint64_t bucket_ns;   /* 0: nothing was left out */
};

/*
 * Chooses at most max_nr (0: all, else at least 4) events of the device so that a line through
 * their totals looks as the whole does: of each stretch of bucket_ns the first, the last, the
 * lowest and the highest. 0 or -ENOMEM; the caller frees with vec_done(&ret_points->events).
 */
int memory_device__points(const struct memory_device *d, const struct timeline *t, size_t max_nr,
			  struct memory_points *ret_points);

/* The operator that an op ran under: not an annotation, if there is another. */
const char *memory_outermost_name(const struct timeline *t, uint32_t op);

#endif /* GP_OUTPUT_MEMORY_MEMORY_USAGE_H */
