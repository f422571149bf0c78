/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Names of ops and kernels, and the ids that stand for them in the ring. The table is append-only
 * and without locks: any thread looks up and adds names. A name is announced in the ring
 * (GP_EV_NAME) before its id is used.
 */
#ifndef GP_COLLECTOR_RUNTIME_NAMES_H
#define GP_COLLECTOR_RUNTIME_NAMES_H

#include "collector/runtime/ring_writer.h"

#include <stdint.h>

#define NAMES_TEXT_BYTES GP_RING_NAME_BYTES /* longer names are cut */

struct name {
	uint64_t hash;
	uint32_t id;
	uint32_t bytes;
	char text[]; /* NUL-terminated, cut to NAMES_TEXT_BYTES */
};

struct names;

/* Ids count up from first_id (> 0). The tables of one ring need separate ranges, each of less than
 * 32768 ids below 65536. NULL when out of memory. */
struct names *names__new(uint32_t first_id);
void names__free(struct names *n);

/* Returns the entry of `text`, which is announced in `w` if it is new; valid until names__free().
 * NULL if there is no room for it, which is counted in `w` as GP_LOSS_NAMES or as lost. */
const struct name *names__get(struct names *n, struct ring_writer *w, const char *text);

#endif /* GP_COLLECTOR_RUNTIME_NAMES_H */
