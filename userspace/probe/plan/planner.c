/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Adds functions and their sites to a plan. The sites of the last function are provisional until
 * planner_end_function() keeps or drops them.
 */
#include "probe/plan/planner.h"

#include "base/intern.h"
#include "wire.h"

#include <errno.h>

bool planner_is_function(const void *arg, int64_t offset)
{
	const struct planner *p = arg;

	return hash__find(&p->starts, p->base + (uint64_t)offset) != NULL;
}

int planner_add_function(struct planner *p, const struct found *f)
{
	struct probe_function fn = {.kind = f->kind,
				    .layout = f->layout,
				    .name = "",
				    .overload = "",
				    .why = "",
				    .code_bytes = (uint32_t)f->code_bytes,
				    .code_offset = f->symbol.file_offset};
	struct intern *texts = p->plan->texts;

	fn.symbol = intern__str(texts, f->symbol.name);
	if (f->kind == PROBE_NODE)
		fn.name = intern__str(texts, NODE_EVENT "?");
	if (f->kind == PROBE_DISPATCH)
		fn.name = intern__str(texts, "?");
	if (f->kind == PROBE_API)
		fn.name = fn.symbol;
	if (!fn.symbol || !fn.name)
		return -ENOMEM;
	return vec_push(&p->plan->functions, fn);
}

int planner_add_site(struct planner *p, const struct found *f, const struct code_insn *insn,
		     bool is_exit)
{
	struct probe_site site = {.offset = f->symbol.file_offset + insn->offset,
				  .function = (uint32_t)p->plan->functions.nr - 1,
				  .sp_delta = is_exit ? 0 : (int16_t)insn->height,
				  .is_exit = is_exit,
				  .emulated = insn->emulated};

	if (!is_exit && (insn->height < 0 || insn->height > PROBE_SP_DELTA_MAX))
		return -EINVAL;
	return vec_push(&p->plan->sites, site);
}

int planner_place_entry(struct planner *p, const struct found *f, const unsigned char *bytes,
			size_t nr, const char **ret_why)
{
	struct code_insn entry;

	if (code_entry(p->decoder, bytes, nr, &entry)) {
		*ret_why = "its code cannot be decoded";
		return -EINVAL;
	}
	return planner_add_site(p, f, &entry, false);
}

int planner_end_function(struct planner *p, size_t sites_nr, int err, const char *why)
{
	struct probe_function *fn = &p->plan->functions.items[p->plan->functions.nr - 1];

	fn->placed = !err;
	if (!err)
		return 0;
	p->plan->sites.nr = sites_nr;
	fn->why = intern__str(p->plan->texts, why);
	return err == -ENOMEM || !fn->why ? -ENOMEM : 0;
}
