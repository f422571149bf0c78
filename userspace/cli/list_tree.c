/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Puts a tree in order without recursion: only the number of processes bounds its depth.
 */
#include "cli/list_tree.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#define NONE	   ROLES_NO_PARENT
#define LEVELS_MAX 8 /* that are drawn; below them all stand at the last one */

/* Where a process stands among the children of its parent. */
struct links {
	size_t first_child, next;
};

static int64_t place_of(const struct process_roles *one)
{
	if (one->parent == NONE)
		return 0;
	if (one->role != PROCESS_ROLE_RANK)
		return INT64_MAX;
	return one->rank >= 0 ? one->rank : one->local_rank;
}

static int compare_siblings(const void *a, const void *b, void *list)
{
	const struct process_roles *all = list;
	size_t x = *(const size_t *)a, y = *(const size_t *)b;
	int64_t left = place_of(&all[x]), right = place_of(&all[y]);

	if (left != right)
		return left < right ? -1 : 1;
	return (x > y) - (x < y);
}

/* Links the processes in the order given. The first root. */
static size_t link_all(const struct list_tree *t, struct links *links)
{
	size_t first_root = NONE;

	for (size_t i = 0; i < t->nr; i++)
		links[t->order[i]] = (struct links){NONE, NONE};
	for (size_t n = t->nr; n-- > 0;) {
		size_t i = t->order[n], parent = t->roles[i].parent;
		size_t *first = parent == NONE ? &first_root : &links[parent].first_child;

		links[i].next = *first;
		t->is_last[i] = *first == NONE;
		*first = i;
	}
	return first_root;
}

/* The entry after `i` and all its descendants; NONE: there is none. */
static size_t next_in_tree(const struct list_tree *t, const struct links *links, size_t i)
{
	while (links[i].next == NONE) {
		i = t->roles[i].parent;
		if (i == NONE)
			return NONE;
	}
	return links[i].next;
}

int list_tree__init(struct list_tree *t, const struct process_roles *roles, size_t nr)
{
	CLEANUP(cleanup_free) struct links *links = calloc(nr + 1, sizeof(*links));
	size_t at;

	*t = (struct list_tree){.roles = roles};
	t->order = calloc(nr + 1, sizeof(*t->order));
	t->is_last = calloc(nr + 1, sizeof(*t->is_last));
	if (!links || !t->order || !t->is_last) {
		list_tree__done(t);
		return -ENOMEM;
	}
	for (size_t i = 0; i < nr; i++)
		if (roles[i].is_shown)
			t->order[t->nr++] = i;
	qsort_r(t->order, t->nr, sizeof(*t->order), compare_siblings, (void *)(uintptr_t)roles);
	at = link_all(t, links);
	for (size_t n = 0; at != NONE; n++) {
		t->order[n] = at;
		at = links[at].first_child != NONE ? links[at].first_child
						   : next_in_tree(t, links, at);
	}
	return 0;
}

void list_tree__add_branch(const struct list_tree *t, size_t index, struct buf *out)
{
	bool last[LEVELS_MAX];
	size_t nr = 0;

	for (size_t i = index; nr < LEVELS_MAX && t->roles[i].parent != NONE; nr++) {
		last[nr] = t->is_last[i];
		i = t->roles[i].parent;
	}
	for (size_t level = nr; level-- > 1;)
		buf__str(out, last[level] ? "   " : "|  ");
	if (nr)
		buf__str(out, last[0] ? "`- " : "|- ");
}

void list_tree__done(struct list_tree *t)
{
	free(t->order);
	free(t->is_last);
	*t = (struct list_tree){0};
}
