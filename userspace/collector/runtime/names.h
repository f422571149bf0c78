/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Names of ops and the ids that stand for them in the ring. Append-only, without locks: any thread
 * looks up and adds; a name is announced in the ring (GP_EV_NAME) before its id is given out.
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
	char text[]; /* terminated, cut to NAMES_TEXT_BYTES */
};

struct names;

/* Ids count up from first_id (> 0); one ring's tables need ranges of their own, each of less than
 * 32768 ids below 65536. NULL when out of memory. */
struct names *names__new(uint32_t first_id);
void names__free(struct names *n);

/* The record of `text`, announced in `w` if it is new. Valid until names__free(). NULL if there is
 * no place for it (counted in w as GP_LOSS_NAMES or lost). */
const struct name *names__get(struct names *n, struct ring_writer *w, const char *text);

#endif /* GP_COLLECTOR_RUNTIME_NAMES_H */
