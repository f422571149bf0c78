/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A small recording in which everything has a stack or lacks one: Python, native and kernel frames,
 * forward and backward, calls, GPU work, allocations on two devices. Any failure aborts.
 */
#ifndef GP_UNIT_STACK_EXAMPLE_H
#define GP_UNIT_STACK_EXAMPLE_H

#include "timeline/model/timeline.h"

/* What its metrics add up to. */
#define STACK_EXAMPLE_CPU_NS	6100000
#define STACK_EXAMPLE_CUDA_NS	2600000
#define STACK_EXAMPLE_CALLS	8
#define STACK_EXAMPLE_ALLOCATED 26880
#define STACK_EXAMPLE_CPU_PEAK	6144
#define STACK_EXAMPLE_CUDA_PEAK 20480
#define STACK_EXAMPLE_WINDOW_NS 9000000
#define STACK_EXAMPLE_REALTIME	1763800000001000000ULL

struct stack_example {
	struct recording *recording;
	struct timeline *timeline;
};

/* Writes it to `path` and reads it back; with `hostile`, names of functions, files, ops, threads
 * and kernels are such as would break a page, a terminal or a line. */
void stack_example__open(struct stack_example *e, const char *path, bool hostile);

/* Many ops, each at a stack of its own, `depth` frames deep: `nr` of them, some thousands. */
void stack_example__open_large(struct stack_example *e, const char *path, uint32_t nr,
			       uint32_t depth);
void stack_example__close(struct stack_example *e);

#endif /* GP_UNIT_STACK_EXAMPLE_H */
