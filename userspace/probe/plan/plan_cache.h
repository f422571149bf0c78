/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Plans on disk. A plan has two parts, which are trusted for different reasons.
 *
 * Where functions that have symbols are probed is decided by how the file is loaded, by its symbols
 * and by the code of those functions. A plan is named by the digest of all that (its key), which
 * the caller makes from the file at hand: another file with the same key has the same places.
 *
 * What no symbol says (operators' names, callers of operators) takes a search through the whole
 * file, and to digest all of that would take as long. So it is kept which files, by their identity
 * on disk, hold what the plan says: another file is searched again, though its key be the same.
 * Where a caller is probed is checked against the file each time all the same.
 *
 * No build-id is used: it is what the target says it is. Whatever is wrong with a file of the
 * cache, it is as if it were not there.
 */
#ifndef GP_PROBE_PLAN_PLAN_CACHE_H
#define GP_PROBE_PLAN_PLAN_CACHE_H

#include "base/digest.h"
#include "probe/plan/plan.h"

/* Of the files and of the planner: plans change with either. Part of every key. */
#define PLAN_CACHE_VERSION 8

/* A plan in the cache, and the file for which it is wanted. */
struct plan_kept {
	uint8_t key[DIGEST_BYTES];   /* of what decides the places of functions with symbols */
	uint8_t file[DIGEST_BYTES];  /* elf_file__digest_identity() */
	uint8_t calls[DIGEST_BYTES]; /* plan_calls_digest() */
	uint8_t sum[DIGEST_BYTES];   /* of the whole plan, as it is stored; after load and store */
	uint32_t found_nr;	     /* functions with symbols: those of the plan that come first */
};

/* Fills functions and sites of the plan which has kept->key; each site lies in its function, and
 * the sites are in the order of the functions. 0 (calls, sum and found_nr are set), or -ENOENT if
 * there is none that can be used (plan and *kept are as before). */
int plan_cache_load(struct probe_plan *plan, const char *dir, struct plan_kept *kept);

/* Stores the plan by key, calls and found_nr, and sets the sum; nothing is written where it is
 * there already. 0 or -errno; a failure is only slower next time. */
int plan_cache_store(const struct probe_plan *plan, const char *dir, struct plan_kept *kept);

/* Whether a search of the file has found what the plan with this key and sum says. */
bool plan_cache_knows(const char *dir, const struct plan_kept *kept);

/* From now on plan_cache_knows() says so; the file may take another one's place. 0 or -errno. */
int plan_cache_learn(const char *dir, const struct plan_kept *kept);

#endif /* GP_PROBE_PLAN_PLAN_CACHE_H */
