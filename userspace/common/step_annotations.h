/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The annotations that PyTorch makes at each step of a program, by name.
 */
#ifndef GP_COMMON_STEP_ANNOTATIONS_H
#define GP_COMMON_STEP_ANNOTATIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* In order of how much each says about steps. */
enum step_marker {
	STEP_MARKER_PROFILER = 0,   /* ProfilerStep#N: the step itself */
	STEP_MARKER_OPTIMIZER = 1,  /* Optimizer.step#CLASS.step: ends a step */
	STEP_MARKER_DATALOADER = 2, /* enumerate(DataLoader)#ITERATOR.__next__: begins a step */
	STEP_MARKER_NONE = 3,
};

#define STEP_PROFILER_PREFIX "ProfilerStep#"
/* One name for the steps of all numbers, as torch.profiler's table has it. */
#define STEP_PROFILER_ANY "ProfilerStep*"

/* The marker whose prefix the name has. */
static inline enum step_marker step_marker_by_prefix(const char *name)
{
	static const char *const prefixes[] = {
		[STEP_MARKER_PROFILER] = STEP_PROFILER_PREFIX,
		[STEP_MARKER_OPTIMIZER] = "Optimizer.step#",
		[STEP_MARKER_DATALOADER] = "enumerate(DataLoader)#",
	};
	unsigned i;

	for (i = 0; i < STEP_MARKER_NONE; i++)
		if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
			break;
	return (enum step_marker)i;
}

/* The marker that an annotation of this name is. */
static inline enum step_marker step_marker_of(const char *name)
{
	static const char next_suffix[] = ".__next__";
	enum step_marker marker = step_marker_by_prefix(name);
	size_t nr = strlen(name), end = sizeof(next_suffix) - 1;

	if (marker == STEP_MARKER_DATALOADER &&
	    (nr < end || memcmp(name + nr - end, next_suffix, end) != 0))
		return STEP_MARKER_NONE;
	return marker;
}

/* The N of "ProfilerStep#N"; 0 for other names. */
static inline uint64_t step_marker_number(const char *name)
{
	const char *mark = strchr(name, '#');

	if (!mark || step_marker_by_prefix(name) != STEP_MARKER_PROFILER)
		return 0;
	return strtoull(mark + 1, NULL, 10);
}

/* Whether an op of this name shows that the program trains. A cycle of operators is then that of a
 * layer rather than of a step. */
static inline bool step_name_trains(const char *name)
{
	return strstr(name, "Backward") || strstr(name, "_backward");
}

#endif /* GP_COMMON_STEP_ANNOTATIONS_H */
