/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The annotations that PyTorch makes at each step of a program, by name.
 */
#ifndef GP_BASE_STEP_ANNOTATIONS_H
#define GP_BASE_STEP_ANNOTATIONS_H

#include <stdbool.h>
#include <stdint.h>

/* In order of how much each says about steps. */
enum step_marker {
	STEP_MARKER_PROFILER = 0,   /* ProfilerStep#N: the step itself */
	STEP_MARKER_OPTIMIZER = 1,  /* Optimizer.step#CLASS.step: a step ends with it */
	STEP_MARKER_DATALOADER = 2, /* enumerate(DataLoader)#ITERATOR.__next__: one begins */
	STEP_MARKER_NONE = 3,
};

/* Which of them an annotation of this name is. */
enum step_marker step_marker_of(const char *name);

/* Whether an op of this name shows that the program trains: then a cycle of operators is a layer's
 * rather than a step's. */
bool step_name_trains(const char *name);

/* The N of "ProfilerStep#N"; 0 if there is none. */
uint64_t step_marker_number(const char *name);

#endif /* GP_BASE_STEP_ANNOTATIONS_H */
