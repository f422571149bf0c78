/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The processes of a capture, and the numbers that the kernel's programs and the collectors use for
 * them. Numbers are few: one is given again when nobody can use it any more, so that a capture may
 * see any number of processes one after another.
 */
#ifndef GP_CAPTURE_PROCESS_PROCESS_TABLE_H
#define GP_CAPTURE_PROCESS_PROCESS_TABLE_H

#include "capture/process/traced_process.h"
#include "capture/symbols/file_users.h"
#include "probe/session/session.h"

#include <stddef.h>

struct process_table {
	/* As VEC() has them, in the order in which they came. */
	struct traced_process **items;
	size_t nr, cap;
	struct traced_process *by_index[GP_PROCESSES_MAX]; /* NULL: the number is free */
	uint32_t joined_nr;				   /* all that ever came */
};

/* Takes the member in and sets its index, the lowest that is free, and its serial number. 0,
 * -ENOSPC (so many cannot be watched at a time) or -ENOMEM. */
int process_table__add(struct process_table *r, struct traced_process *m);

/* Takes out those that `is_gone` and frees their numbers, and calls `release` with each, which owns
 * it. The first one stays, and so does its number, 0: it leads the capture. */
void process_table__sweep(struct process_table *r, bool (*is_gone)(const struct traced_process *m),
			  void (*release)(struct traced_process *m, void *arg), void *arg);

/* Which files the processes map that are still here. Borrows the table. */
struct file_users process_table__file_users(const struct process_table *r);

/* The number that the next one gets, GP_PROCESSES_MAX: none is free. */
size_t process_table__next(const struct process_table *r);

/* NULL: nobody has this number. */
static inline struct traced_process *process_table__find(const struct process_table *r,
							 uint16_t index)
{
	return index < GP_PROCESSES_MAX ? r->by_index[index] : NULL;
}

/* Members themselves are not freed. */
void process_table__done(struct process_table *r);

#endif /* GP_CAPTURE_PROCESS_PROCESS_TABLE_H */
