/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Maps a process's own thread ids (in its innermost PID namespace) to gpuprof's.
 */
#ifndef GP_CAPTURE_COLLECTOR_TID_MAP_H
#define GP_CAPTURE_COLLECTOR_TID_MAP_H

#include "base/hash.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct tid_map {
	pid_t pid;
	bool same;  /* both are in one namespace: nothing to translate */
	bool fresh; /* the tasks were read in this round */
	uint32_t rounds;
	struct hash map;
	uint64_t unknown_nr; /* ids for which no thread was found */
};

/* `pid`: the process as gpuprof sees it. Never fails: what cannot be read counts as one namespace.
 */
void tid_map__init(struct tid_map *t, pid_t pid);
void tid_map__done(struct tid_map *t);
/* A new round: the tasks may be read again, once. */
void tid_map__round(struct tid_map *t);
/* Our id of the thread, or 0 if it cannot be told (it has ended, or there is none). */
uint32_t tid_map__get(struct tid_map *t, uint32_t tid);

#endif /* GP_CAPTURE_COLLECTOR_TID_MAP_H */
