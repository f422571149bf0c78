/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Orders processes as a tree, and says which branches to draw before each.
 */
#ifndef GP_CLI_LIST_TREE_H
#define GP_CLI_LIST_TREE_H

#include "base/buf.h"
#include "inspect/program/roles.h"

#include <stdbool.h>
#include <stddef.h>

struct list_tree {
	const struct process_roles *roles; /* borrowed */
	size_t *order;			   /* indexes of those that are shown, parents first */
	size_t nr;
	bool *is_last; /* by index: no sibling comes behind it */
};

/* Roots by index; under each parent ranks by their number, then others by index. 0 or -ENOMEM. */
int list_tree__init(struct list_tree *t, const struct process_roles *roles, size_t nr);
/* Appends what leads to a process from its ancestors: "|  `- ". Nothing before a root. */
void list_tree__add_branch(const struct list_tree *t, size_t index, struct buf *out);
/* May be called on one that is all zero. */
void list_tree__done(struct list_tree *t);

#endif /* GP_CLI_LIST_TREE_H */
