/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The plans of one session, by file, and the names that events refer to. A file is known by device,
 * inode, size and times: a number used again for another file is another file.
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
	struct probe_plan *plan; /* NULL: the file is no program */
	uint32_t *name_ids;	 /* tag of each function: name id, and scope or layout; 0: none */
	uint32_t *node_ids;	 /* name id of each class of autograd nodes */
	bool *wanted;		 /* of each function: the globs name it */
};

struct session_plans {
	const struct probe_options *options;
	bool few;    /* each probe is dear: without a choice only the common operators */
	bool chosen; /* not all operators: */
	struct gp_globs globs;
	struct intern *texts;
	struct hash name_index;
	VEC(struct probe_name) names; /* id i + 1 */
	VEC(struct session_plan) items;
};

/* `options` must live as long; `few`: see there. 0, -ENOMEM, or -E2BIG: too many globs. */
int session_plans__init(struct session_plans *s, const struct probe_options *options, bool few);
void session_plans__done(struct session_plans *s);

/* The plan of a mapped file, made now if need be: its index, or -errno with a reason. What is no
 * program is asked once; after that it has an item without a plan. Of anything else that goes wrong
 * nothing is kept: it may go well the next time. -EACCES if it is this file that may not be read,
 * never -EPERM. */
int session_plans__get(struct session_plans *s, const struct target_library *lib,
		       struct reason *why, uint32_t *ret_index);

#endif /* GP_PROBE_SESSION_SESSION_PLANS_H */
