/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Plans on disk. A plan has two parts that are trusted for different reasons.
 *
 * Sites of functions with symbols follow from how the file is loaded, its symbols and the code of
 * those functions. The plan's name is the digest of all that (its key), which the caller computes
 * from the file at hand: another file with the same key has the same sites.
 *
 * What no symbol says (operators' names, callers of operators) takes a search through the whole
 * file, and digesting all of it would take as long. So the cache remembers which files, by their
 * identity on disk, were searched; another file is searched again even if its key is the same. The
 * sites of callers are checked against the file each time.
 *
 * Build-ids are not used: the process chooses them. A damaged file in the cache counts as absent.
 */
#ifndef GP_PROBE_PLAN_PLAN_CACHE_H
#define GP_PROBE_PLAN_PLAN_CACHE_H

#include "base/digest.h"
#include "probe/plan/plan.h"

/* The version of the files and of the planner, part of every key: a change of either makes new
 * plans. */
#define PLAN_CACHE_VERSION 8

/* A plan in the cache, and the file that it is for. */
struct plan_kept {
	uint8_t key[DIGEST_BYTES];  /* digest of what decides the sites of functions with symbols */
	uint8_t file[DIGEST_BYTES]; /* elf_file__digest_identity() */
	uint8_t calls[DIGEST_BYTES]; /* plan_calls_digest() */
	uint8_t sum[DIGEST_BYTES];   /* digest of the whole plan as stored; set by load and store */
	uint32_t found_nr;	     /* the plan's functions with symbols, which come first */
};

/* Loads the functions and sites of the plan with kept->key; each site lies in its function, and
 * sites are in the order of the functions. 0 (sets calls, sum and found_nr), or -ENOENT if there is
 * no valid one (plan and *kept are unchanged). */
int plan_cache_load(struct probe_plan *plan, const char *dir, struct plan_kept *kept);

/* Stores the plan by key, calls and found_nr, and sets the sum; writes nothing if it exists
 * already. 0, or -errno: the next run is slower. */
int plan_cache_store(const struct probe_plan *plan, const char *dir, struct plan_kept *kept);

/* Whether a search of this file has given what the plan with this key and sum says. */
bool plan_cache_knows(const char *dir, const struct plan_kept *kept);

/* Makes plan_cache_knows() true for the file; it may replace another one. 0 or -errno. */
int plan_cache_learn(const char *dir, const struct plan_kept *kept);

#endif /* GP_PROBE_PLAN_PLAN_CACHE_H */
