/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Numbers of processes, given and taken back.
 */
#include "capture/roster.h"

#include <errno.h>

size_t roster__next(const struct roster *r)
{
	size_t index = 0;

	while (index < GP_PROCESSES_MAX && r->by_index[index])
		index++;
	return index;
}

int roster__add(struct roster *r, struct member *m)
{
	size_t index = roster__next(r);

	if (index == GP_PROCESSES_MAX)
		return -ENOSPC;
	if (vec_push(r, m))
		return -ENOMEM;
	r->by_index[index] = m;
	m->index = (uint16_t)index;
	m->serial = r->joined_nr++;
	return 0;
}

void roster__sweep(struct roster *r, bool (*is_gone)(const struct member *m),
		   void (*release)(struct member *m, void *arg), void *arg)
{
	size_t kept = 0;

	for (size_t i = 0; i < r->nr; i++) {
		struct member *m = r->items[i];

		if (!i || !is_gone(m)) {
			r->items[kept++] = m;
			continue;
		}
		r->by_index[m->index] = NULL;
		release(m, arg);
	}
	r->nr = kept;
}

static bool is_mapped(const struct roster *r, dev_t device, ino_t inode)
{
	for (size_t i = 0; i < r->nr; i++) {
		const struct target_process *p = r->items[i]->end ? NULL : r->items[i]->process;

		for (size_t j = 0; p && j < p->libraries_nr; j++)
			if (p->libraries[j].inode == inode && p->libraries[j].device == device)
				return true;
	}
	return false;
}

bool roster__lets_go(const struct roster *r, dev_t device, ino_t inode, uint32_t *idle_nr)
{
	if (is_mapped(r, device, inode))
		*idle_nr = 0;
	return (*idle_nr)++ >= 2;
}

void roster__done(struct roster *r)
{
	vec_done(r);
	*r = (struct roster){0};
}
