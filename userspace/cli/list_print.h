/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Prints `gpuprof list`: a table with a tree in it, or JSON.
 */
#ifndef GP_CLI_LIST_PRINT_H
#define GP_CLI_LIST_PRINT_H

#include "base/buf.h"
#include "base/vec.h"
#include "inspect/process/process.h"
#include "inspect/program/roles.h"

#include <stddef.h>

/* All processes that could be looked into, sorted by pid, their roles found. */
struct list_rows {
	VEC(struct target_process *) processes;
	VEC(struct process_roles) roles; /* at the same indexes */
	size_t hidden_nr;		 /* processes without the right to look */
};

/* Writes those that are shown, of which there are *ret_shown_nr. Under a parent ranks come by
 * number, others by pid. `columns`: of the terminal, where columns of the table give way to the
 * command; 0: there is none. 0 or -ENOMEM. */
int list_print_table(struct buf *out, const struct list_rows *r, size_t columns,
		     size_t *ret_shown_nr);
/* The same as JSON, by pid. */
int list_print_json(struct buf *out, const struct list_rows *r, size_t *ret_shown_nr);

#endif /* GP_CLI_LIST_PRINT_H */
