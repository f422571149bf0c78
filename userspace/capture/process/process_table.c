/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The numbers of processes: given out, looked up and taken back.
 */
#include "capture/process/process_table.h"

#include <errno.h>

size_t process_table__next(const struct process_table *r)
{
	size_t index = 0;

	while (index < GP_PROCESSES_MAX && r->by_index[index])
		index++;
	return index;
}

int process_table__add(struct process_table *r, struct traced_process *m)
{
	size_t index = process_table__next(r);

	if (index == GP_PROCESSES_MAX)
		return -ENOSPC;
	if (vec_push(r, m))
		return -ENOMEM;
	r->by_index[index] = m;
	m->index = (uint16_t)index;
	m->serial = r->joined_nr++;
	return 0;
}

void process_table__sweep(struct process_table *r, bool (*is_gone)(const struct traced_process *m),
			  void (*release)(struct traced_process *m, void *arg), void *arg)
{
	size_t kept = 0;

	for (size_t i = 0; i < r->nr; i++) {
		struct traced_process *m = r->items[i];

		if (!i || !is_gone(m)) {
			r->items[kept++] = m;
			continue;
		}
		r->by_index[m->index] = NULL;
		release(m, arg);
	}
	r->nr = kept;
}

static bool is_mapped(const void *arg, dev_t device, ino_t inode)
{
	const struct process_table *r = arg;

	for (size_t i = 0; i < r->nr; i++) {
		const struct target_process *p = r->items[i]->end ? NULL : r->items[i]->process;

		for (size_t j = 0; p && j < p->libraries_nr; j++)
			if (p->libraries[j].inode == inode && p->libraries[j].device == device)
				return true;
	}
	return false;
}

struct file_users process_table__file_users(const struct process_table *r)
{
	return (struct file_users){.is_mapped = is_mapped, .arg = r};
}

void process_table__done(struct process_table *r)
{
	vec_done(r);
	*r = (struct process_table){0};
}
