/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Names of annotations that mark steps.
 */
#include "base/step_annotations.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"

static const char profiler_prefix[] = "ProfilerStep#";
static const char optimizer_prefix[] = "Optimizer.step#";
static const char dataloader_prefix[] = "enumerate(DataLoader)#";
static const char next_suffix[] = ".__next__";

static bool begins(const char *name, const char *prefix)
{
	return !strncmp(name, prefix, strlen(prefix));
}

enum step_marker step_marker_of(const char *name)
{
	size_t nr = strlen(name), end = strlen(next_suffix);

	if (begins(name, profiler_prefix))
		return STEP_MARKER_PROFILER;
	if (begins(name, optimizer_prefix))
		return STEP_MARKER_OPTIMIZER;
	if (begins(name, dataloader_prefix) && nr >= end && !strcmp(name + nr - end, next_suffix))
		return STEP_MARKER_DATALOADER;
	return STEP_MARKER_NONE;
}

bool step_name_trains(const char *name)
{
	return strstr(name, "Backward") || strstr(name, "_backward");
}

uint64_t step_marker_number(const char *name)
{
	if (!begins(name, profiler_prefix))
		return 0;
	return strtoull(name + strlen(profiler_prefix), NULL, 10);
}
