/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Everything in a timeline that has a weight and may have a stack. All outputs of stacks count it
 * by this one function, so that their sums agree.
 */
#ifndef GP_OUTPUT_FLAME_STACK_SAMPLES_H
#define GP_OUTPUT_FLAME_STACK_SAMPLES_H

#include "timeline/model/timeline.h"

/* What a sample can be weighed by: the columns of the table, and what a device's memory held at its
 * peak. In a recording of samples STACK_CPU is the time that samples on a CPU stand for. */
enum stack_metric {
	STACK_CPU = 0,	 /* ns of an op or API call itself, without its children */
	STACK_CUDA = 1,	 /* ns of GPU work */
	STACK_CALLS = 2, /* ops */
	STACK_ALLOCATIONS = 3,
	STACK_ALLOCATED = 4, /* bytes, freed since or not */
	STACK_PEAK = 5,	     /* bytes, of all devices, each at its own peak */
	STACK_SAMPLES = 6,   /* of threads on a CPU */
	STACK_OFF = 7,	     /* ns of threads on no CPU: estimated from samples */
	STACK_METRIC_NR = 8,
};

/* The metric's name as --metric takes it. The reverse: the metric of this name (NULL: STACK_CPU),
 * or -1. */
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

/* The operator around the sample, or the text that stands for none. */
const char *stack_sample_op(const struct stack_sample *s);

/* Writes the device of a sample that has one: "cpu", "cuda:0", "type 7:0". */
void stack_sample_device(const struct stack_sample *s, char *to, size_t bytes);

/*
 * Calls fn for each sample, until it returns non-zero. With `by_work`, GPU time is a sample of the
 * work itself; else it belongs to the op that launched the work, so that an op is one sample. Work
 * of no op is always a sample. Ops that the table leaves out count for their parents, so the sums
 * of each metric are the table's. 0, fn's value or -ENOMEM.
 */
int stack_samples_each(const struct timeline *t, bool by_work,
		       int (*fn)(const struct stack_sample *s, void *arg), void *arg);

#endif /* GP_OUTPUT_FLAME_STACK_SAMPLES_H */
