/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A thread that builds unwind tables: a large one takes a good part of a second, during which
 * nobody would drain the ring. It starts with the first request. All functions are for one other
 * thread.
 */
#ifndef GP_PROBE_UNWIND_UNWIND_WORKER_H
#define GP_PROBE_UNWIND_UNWIND_WORKER_H

#include "inspect/unwind/unwind_table.h"

#include <stdbool.h>
#include <stdint.h>

struct unwind_worker;

/* Identifies a file. All zero: the vDSO. */
struct file_key {
	uint64_t device, inode, bytes, modified_ns;
};

/* A table that was requested. */
struct unwind_made {
	struct file_key key;
	struct unwind_table table; /* empty: the file has no unwind information */
	int err;		   /* 0, or -errno: there is no table */
};

/* `cache_dir` (borrowed, NULL: none) holds tables on disk. NULL when out of memory. */
struct unwind_worker *unwind_worker__new(const char *cache_dir);
/* Waits for the table that is being built. NULL is allowed. */
void unwind_worker__free(struct unwind_worker *w);

/* Requests the table of a file; `open_path` NULL: of the vDSO. Has no effect while an earlier
 * request for it has not been taken. 0 or -errno. */
int unwind_worker__ask(struct unwind_worker *w, const struct file_key *key, const char *open_path);

/* Returns a finished table, which the caller releases. False: there is none. With `wait`, false
 * only if nothing is left that was requested. */
bool unwind_worker__take(struct unwind_worker *w, bool wait, struct unwind_made *ret_made);

#endif /* GP_PROBE_UNWIND_UNWIND_WORKER_H */
