/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What the files of the planner share: plan.c plans what has a symbol, plan_calls.c what is found
 * by whom it calls. For no one else.
 */
#ifndef GP_PROBE_PLAN_PLAN_PRIVATE_H
#define GP_PROBE_PLAN_PLAN_PRIVATE_H

#include "base/digest.h"
#include "base/hash.h"
#include "probe/plan/code.h"
#include "probe/plan/names.h"
#include "probe/plan/plan.h"

/* A function to be probed. */
struct found {
	struct elf_symbol symbol;
	size_t code_bytes; /* to be read */
	/* What was read of it, the file's; what the plan is made from and its key covers. */
	const unsigned char *code;
	size_t code_nr;
	uint32_t call; /* if found by a call: where in the function that is */
	uint8_t kind;
	uint8_t layout; /* PROBE_API: enum gp_api_layout */
};

struct planner {
	struct elf_file *file;
	struct probe_plan *plan;
	struct code_decoder *decoder;
	struct op_names names;
	VEC(uint64_t) addresses; /* of all functions */
	struct hash starts;	 /* the same; once something is to be placed */
	struct hash tables;	 /* and of the nodes' virtual tables */
	struct hash ops;	 /* and of operators */
	struct hash ends;	 /* and of what never returns */
	VEC(struct found) found;
	VEC(struct found) calls; /* in order of address */
	uint64_t base;		 /* address of the function at hand */
};

/* Appends the function to the plan, not placed yet. 0 or -ENOMEM. */
int plan_add_function(struct planner *p, const struct found *f);

/* Appends a site of the last function. 0 or -ENOMEM. */
int plan_add_site(struct planner *p, const struct found *f, const struct code_insn *insn,
		  bool is_exit);

/* Adds the site of a function of which only the entry is probed; `bytes` is its beginning. 0,
 * -ENOMEM, or -EINVAL with the reason. */
int plan_place_entry(struct planner *p, const struct found *f, const unsigned char *bytes,
		     size_t nr, const char **ret_why);

/* Ends the placing of the last function: `err` 0 keeps the sites behind sites_nr, otherwise they go
 * and `why` is kept. 0 or -ENOMEM. */
int plan_placed(struct planner *p, size_t sites_nr, int err, const char *why);

/* Of struct code: whether a function is known to begin there. `arg` is the planner. */
bool plan_is_function(const void *arg, int64_t offset);

/* ---- plan_calls.c ---- */

/* Whether the file may have what plan_place_calls() looks for. */
bool plan_has_calls(struct planner *p);

/* Whether the file and the PyTorch that it calls are built with the C++ library's old strings, as
 * PyPI's wheels of PyTorch are up to 2.6. */
bool plan_has_old_strings(struct planner *p);

/* Looks through all code for those who call operators in other ways than by the operators' own
 * functions, and for record_function()'s, and places them. 0 or -errno. */
int plan_place_calls(struct planner *p);

/* The digest of the code of the functions of the plan from the first-th on, which are those of
 * plan_place_calls(). */
void plan_calls_digest(struct planner *p, size_t first, uint8_t ret_sum[DIGEST_BYTES]);

/* Whether they still are functions of the file at hand. */
bool plan_calls_are_there(struct planner *p, size_t first);

#endif /* GP_PROBE_PLAN_PLAN_PRIVATE_H */
