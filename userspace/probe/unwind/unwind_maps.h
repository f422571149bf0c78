/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What the kernel's walk of native stacks knows: where files lie in each process, and the unwind
 * tables of those that stacks have come to. Tables are shared by all processes that map the same
 * file and go when the last of them has gone.
 */
#ifndef GP_PROBE_UNWIND_UNWIND_MAPS_H
#define GP_PROBE_UNWIND_UNWIND_MAPS_H

#include "inspect/process/process.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct unwind_maps;

/* `ranges_fd` and `tables_fd`: the maps unwind_ranges and unwind_tables, borrowed. `cache_dir`
 * (borrowed): tables on disk, NULL: none. NULL when out of memory. */
struct unwind_maps *unwind_maps__new(int ranges_fd, int tables_fd, const char *cache_dir);
void unwind_maps__free(struct unwind_maps *m);

/* Tells the kernel where files lie in the process, as of p->changes_nr. Tables that are there
 * already serve at once. 0 or -errno: the process's native stacks are as before. */
int unwind_maps__set_process(struct unwind_maps *m, uint16_t process_index,
			     const struct target_process *p);
/* Forgets the process. */
void unwind_maps__drop_process(struct unwind_maps *m, uint16_t process_index);

/* Has the table of the file made that lies at `address` in the process: it serves once it has been
 * collected. 0 (also if it is there already); -ENOENT if no known file lies there; or another
 * -errno: its code stays without a table. */
int unwind_maps__load(struct unwind_maps *m, uint16_t process_index, uint64_t address);

/* The same for the library whose file name begins with prefix. */
int unwind_maps__load_library(struct unwind_maps *m, uint16_t process_index, const char *prefix);

/* Puts the tables that have been made since to use; with `wait` all that were asked for. One that
 * could not be made for a reason that may pass may be asked for again a second later. */
void unwind_maps__collect(struct unwind_maps *m, bool wait);

#endif /* GP_PROBE_UNWIND_UNWIND_MAPS_H */
