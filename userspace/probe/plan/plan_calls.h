/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Plans probes for functions that have no symbol of their own, found by what their code calls.
 */
#ifndef GP_PROBE_PLAN_PLAN_CALLS_H
#define GP_PROBE_PLAN_PLAN_CALLS_H

#include "base/digest.h"
#include "probe/plan/planner.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether the file may call what plan_calls_place() searches for. */
bool plan_calls_any(struct planner *p);

/* Whether the file, and the PyTorch that it calls, use the C++ library's old string ABI. PyPI's
 * wheels of PyTorch do up to 2.6. */
bool plan_calls_use_old_strings(struct planner *p);

/* Searches all code for callers of operators that are not operator functions, and for
 * record_function()'s own functions, and plans their probes. 0 or -errno. */
int plan_calls_place(struct planner *p);

/* Digests the code of the plan's functions from index `first` on: those that plan_calls_place()
 * added. */
void plan_calls_digest(struct planner *p, size_t first, uint8_t ret_sum[DIGEST_BYTES]);

/* Whether those functions still exist in the file. */
bool plan_calls_are_there(struct planner *p, size_t first);

#endif /* GP_PROBE_PLAN_PLAN_CALLS_H */
