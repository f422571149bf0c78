/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The chosen operators, in the form that both the kernel's programs and the planner search.
 */
#ifndef GP_PROBE_PLAN_GLOBS_H
#define GP_PROBE_PLAN_GLOBS_H

#include <stdbool.h>

#include "wire.h"

/* Compiles comma-separated shell patterns, as POSIX defines them for fnmatch() without flags (a
 * comma in brackets separates too); empty ones match nothing. 0, or -E2BIG: no room. Sets all of
 * *ret. */
int globs_compile(const char *text, struct gp_globs *ret);

/* Whether one of the patterns matches the name. */
bool globs_fit(const struct gp_globs *globs, const char *name);

#endif /* GP_PROBE_PLAN_GLOBS_H */
