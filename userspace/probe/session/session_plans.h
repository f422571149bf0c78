/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A session's plans, by file, and the names that events refer to. A file is identified by device,
 * inode, size and times, so a reused inode number is another file.
 */
#ifndef GP_PROBE_SESSION_SESSION_PLANS_H
#define GP_PROBE_SESSION_SESSION_PLANS_H

#include "base/hash.h"
#include "base/intern.h"
#include "probe/plan/globs.h"
#include "probe/plan/plan.h"
#include "probe/session/session.h"

#include <sys/stat.h>

struct session_plan {
	struct stat file;
	struct probe_plan *plan; /* NULL: not an ELF file that can be probed */
	uint32_t *name_ids;	 /* tag of each function: name id, with scope or layout; 0: none */
	uint32_t *node_ids;	 /* name id of each class of autograd nodes */
	bool *wanted;		 /* for each function: the globs match it */
};

struct session_plans {
	const struct probe_options *options;
	bool few;    /* each probe is expensive: without globs, only the common operators */
	bool chosen; /* there are globs: */
	struct gp_globs globs;
	struct intern *texts;
	struct hash name_index;
	VEC(struct probe_name) names; /* id i + 1 */
	VEC(struct session_plan) items;
};

/* `options` must live as long; for `few` see the struct. 0, -ENOMEM, or -E2BIG: too many globs. */
int session_plans__init(struct session_plans *s, const struct probe_options *options, bool few);
void session_plans__done(struct session_plans *s);

/* Returns the index of a mapped file's plan, which is made now if needed, or -errno with a reason.
 * A file that cannot be probed is examined once and keeps an item without a plan. After any other
 * failure the next call tries again. -EACCES if this file must not be read, never -EPERM. */
int session_plans__get(struct session_plans *s, const struct target_library *lib,
		       struct reason *why, uint32_t *ret_index);

#endif /* GP_PROBE_SESSION_SESSION_PLANS_H */
