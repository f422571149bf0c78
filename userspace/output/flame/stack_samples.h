/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Everything in a timeline that has a weight and, perhaps, a stack: what all outputs made of stacks
 * count.
 */
#ifndef GP_OUTPUT_FLAME_STACK_SAMPLES_H
#define GP_OUTPUT_FLAME_STACK_SAMPLES_H

#include "timeline/model/timeline.h"

/* Where there are samples STACK_CPU is what those on a CPU stand for. The columns of the table, and
 * what a device's memory held when it held most. */
enum stack_metric {
	STACK_CPU = 0,	 /* ns of an op's or API call's own */
	STACK_CUDA = 1,	 /* ns of GPU work */
	STACK_CALLS = 2, /* ops */
	STACK_ALLOCATIONS = 3,
	STACK_ALLOCATED = 4, /* bytes, freed since or not */
	STACK_PEAK = 5,	     /* bytes, of all devices, each at its own peak */
	STACK_SAMPLES = 6,   /* of threads on a CPU */
	STACK_OFF = 7,	     /* ns of threads on no CPU: estimated from samples */
	STACK_METRIC_NR = 8,
};

/* What --metric calls it; the metric of a name (NULL: STACK_CPU), -1 if it is none. */
const char *stack_metric_name(enum stack_metric metric);
int stack_metric_of(const char *name);

/* Whether the recording could have something to count. */
bool stack_metric_captured(const struct timeline *t, enum stack_metric metric);

/* One op, API call, piece of GPU work, allocation or sample. Names are the timeline's. */
struct stack_sample {
	struct tl_stack stack;
	const char *op;	  /* NULL: outside any, or not known */
	bool op_unknown;  /* not all of its stack is known, so it may be in one */
	const char *leaf; /* name of the API call or GPU work; NULL: neither */
	bool is_gpu;	  /* leaf is GPU work */
	uint32_t process; /* of timeline.processes, TL_NONE: not known */
	uint32_t thread;  /* of timeline.threads, TL_NONE: not known */
	/* Of allocations and GPU work: enum gp_device_type and index; -1: neither. */
	int32_t device_type;
	int32_t device_index;
	uint64_t values[STACK_METRIC_NR];
};

/* The operator that it is in, or what stands in the place of one. */
const char *stack_sample_op(const struct stack_sample *s);

/* "cpu", "cuda:0", "type 7:0" of a sample that has a device. */
void stack_sample_device(const struct stack_sample *s, char *to, size_t bytes);

/*
 * Calls fn with each; ends when it returns non-zero and returns that. With `by_work` GPU time comes
 * with the work itself, else with the op that launched it, so that an op is one sample; work of no
 * op comes by itself in any case. What the table leaves out counts for what stands above it, as
 * there; sums of each metric are those of the table. 0, fn's value or -ENOMEM.
 */
int stack_samples_each(const struct timeline *t, bool by_work,
		       int (*fn)(const struct stack_sample *s, void *arg), void *arg);

#endif /* GP_OUTPUT_FLAME_STACK_SAMPLES_H */
