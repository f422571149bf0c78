/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The state of one planning run, and how functions and their sites are added to the plan. plan.c
 * finds functions by their symbols, plan_calls.c by the calls in their code.
 */
#ifndef GP_PROBE_PLAN_PLANNER_H
#define GP_PROBE_PLAN_PLANNER_H

#include "base/digest.h"
#include "base/hash.h"
#include "probe/plan/code.h"
#include "probe/plan/names.h"
#include "probe/plan/plan.h"

/* A function that the plan will cover. */
struct found {
	struct elf_symbol symbol;
	size_t code_bytes; /* how much of its code to read; 0: none */
	/* The code that was read, borrowed from the file. The plan and its cache key are both made
	 * from these bytes. */
	const unsigned char *code;
	size_t code_nr;
	uint32_t call; /* found by a call: the offset of that call in the function */
	uint8_t kind;
	uint8_t layout; /* PROBE_API: enum gp_api_layout */
};

struct planner {
	struct elf_file *file;
	struct probe_plan *plan;
	struct code_decoder *decoder;
	struct op_names names;
	VEC(uint64_t) addresses; /* starts of all functions in the file */
	struct hash starts;	 /* the same as a set, built before the first function is placed */
	struct hash tables;	 /* addresses of the virtual tables of autograd nodes */
	struct hash ops;	 /* addresses of operators */
	struct hash ends;	 /* addresses of functions that never return */
	VEC(struct found) found; /* by symbol, in order of their file offset */
	VEC(struct found) calls; /* by a call in their code, in order of address */
	uint64_t base;		 /* address of the function whose code is being read */
};

/* Appends the function to the plan, without sites. An operator gets its name later. 0 or -ENOMEM.
 */
int planner_add_function(struct planner *p, const struct found *f);

/* Appends a site to the last function. 0; -ENOMEM; -EINVAL: an entry whose stack height no cookie
 * can hold. */
int planner_add_site(struct planner *p, const struct found *f, const struct code_insn *insn,
		     bool is_exit);

/* Adds an entry site, and no exits, to the last function. `bytes` is the beginning of its code. 0,
 * -ENOMEM, or -EINVAL with the reason (static). */
int planner_place_entry(struct planner *p, const struct found *f, const unsigned char *bytes,
			size_t nr, const char **ret_why);

/* Finishes the last function. `err` 0 keeps the sites that were added after the first `sites_nr`;
 * any other value drops them and stores `why` in the plan. 0 or -ENOMEM. */
int planner_end_function(struct planner *p, size_t sites_nr, int err, const char *why);

/* struct code's is_function: whether a known function begins at the offset from `base`. `arg` is
 * the planner. */
bool planner_is_function(const void *arg, int64_t offset);

#endif /* GP_PROBE_PLAN_PLANNER_H */
