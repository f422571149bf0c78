/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Which operators were chosen, as the kernel's programs and the planner both look it up.
 */
#ifndef GP_PROBE_PLAN_GLOBS_H
#define GP_PROBE_PLAN_GLOBS_H

#include <stdbool.h>

#include "wire.h"

/* Comma-separated shell patterns, as POSIX has them for fnmatch() without flags (a comma ends one
 * in brackets, too); empty ones fit nothing. 0, or -E2BIG: more of them than there is room for.
 * Of *ret all is set. */
int globs_compile(const char *text, struct gp_globs *ret);

/* Whether one of them fits the name. */
bool globs_fit(const struct gp_globs *globs, const char *name);

#endif /* GP_PROBE_PLAN_GLOBS_H */
