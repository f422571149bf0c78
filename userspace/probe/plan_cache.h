/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Plans on disk, one file for each id of a plan. A build-id is the target's word, so a plan is used
 * only if its fingerprint (of the symbols and of every planned byte of code) is that of the file at
 * hand. What was found by looking through all code has a fingerprint of its own, which the caller
 * compares: looking for it again would take too long. Whatever else is wrong with a file of the
 * cache, it is as if it were not there.
 */
#ifndef GP_PROBE_PLAN_CACHE_H
#define GP_PROBE_PLAN_CACHE_H

#include "probe/plan.h"

/* Fills functions, sites and counts of the plan, which has its id. 0, or -ENOENT if there is
 * none that can be used (the plan is as before). *ret_calls is what was stored. */
int plan_cache_load(struct probe_plan *plan, const char *dir, uint64_t fingerprint,
		    uint64_t *ret_calls);

/* Stores it, making the directory. 0 or -errno; a failure is only slower next time. */
int plan_cache_store(const struct probe_plan *plan, const char *dir, uint64_t fingerprint,
		     uint64_t calls);

#endif /* GP_PROBE_PLAN_CACHE_H */
