/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A thread of its own that makes unwind tables: a large one takes a good part of a second, in which
 * nobody would empty the ring. It starts with the first table that is asked for. Everything here is
 * for one other thread to call.
 */
#ifndef GP_PROBE_UNWIND_UNWIND_WORKER_H
#define GP_PROBE_UNWIND_UNWIND_WORKER_H

#include "inspect/unwind/unwind_table.h"

#include <stdbool.h>
#include <stdint.h>

struct unwind_worker;

/* A file, by what tells it apart from others. All zero: the vDSO. */
struct file_key {
	uint64_t device, inode, bytes, modified_ns;
};

/* A table that was asked for. */
struct unwind_made {
	struct file_key key;
	struct unwind_table table; /* empty: the file has no unwind information */
	int err;		   /* 0, or -errno: there is no table */
};

/* `cache_dir` (borrowed): tables on disk, NULL: none. NULL when out of memory. */
struct unwind_worker *unwind_worker__new(const char *cache_dir);
/* Waits for the table that is being made. NULL is fine. */
void unwind_worker__free(struct unwind_worker *w);

/* Has the table of a file made; `open_path` NULL: of the vDSO. Nothing if that was asked for
 * already and not taken yet. 0 or -errno. */
int unwind_worker__ask(struct unwind_worker *w, const struct file_key *key, const char *open_path);

/* One that has been made, whose table is the caller's to release. False: there is none. With `wait`
 * only when nothing is left that was asked for. */
bool unwind_worker__take(struct unwind_worker *w, bool wait, struct unwind_made *ret_made);

#endif /* GP_PROBE_UNWIND_UNWIND_WORKER_H */
