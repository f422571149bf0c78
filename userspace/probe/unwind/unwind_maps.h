/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What the kernel's walk of native stacks knows: where files are mapped in each process, and the
 * unwind tables of those that stacks have led to. All processes that map a file share its table,
 * which goes when the last of them goes.
 */
#ifndef GP_PROBE_UNWIND_UNWIND_MAPS_H
#define GP_PROBE_UNWIND_UNWIND_MAPS_H

#include "inspect/process/process.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct unwind_maps;

/* `ranges_fd` and `tables_fd` are the maps unwind_ranges and unwind_tables, borrowed, as is
 * `cache_dir` (NULL: no cache). NULL when out of memory. */
struct unwind_maps *unwind_maps__new(int ranges_fd, int tables_fd, const char *cache_dir);
void unwind_maps__free(struct unwind_maps *m);

/* Publishes where files are mapped in the process, as of p->changes_nr. Tables that exist already
 * are used at once. 0, or -errno: the process's native stacks are as before. */
int unwind_maps__set_process(struct unwind_maps *m, uint16_t process_index,
			     const struct target_process *p);
/* Forgets the process. */
void unwind_maps__drop_process(struct unwind_maps *m, uint16_t process_index);

/* Requests the table of the file at `address` in the process; it is used once it has been
 * collected. 0 (also if it exists already); -ENOENT if no known file lies there; or another -errno:
 * the code stays without a table. */
int unwind_maps__load(struct unwind_maps *m, uint16_t process_index, uint64_t address);

/* Requests the table of the library whose file name begins with prefix. */
int unwind_maps__load_library(struct unwind_maps *m, uint16_t process_index, const char *prefix);

/* Collects the tables that are finished, or with `wait` all that were requested. One that failed
 * for a reason that may pass can be requested again a second later. */
void unwind_maps__collect(struct unwind_maps *m, bool wait);

#endif /* GP_PROBE_UNWIND_UNWIND_MAPS_H */
