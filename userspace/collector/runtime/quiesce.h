/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Holding the process's other threads while CUPTI comes or goes. CUPTI comes and goes for all
 * threads at once, and a thread that is in a CUDA call at that moment may find half of it: CUPTI
 * 13.0 then reads memory that is not set up yet, or corrupts the heap as it leaves. So gpuprof
 * holds all other threads outside of CUDA meanwhile. Keep that short, and do nothing in it that
 * needs another thread. The states are enum gp_quiesce.
 */
#ifndef GP_COLLECTOR_RUNTIME_QUIESCE_H
#define GP_COLLECTOR_RUNTIME_QUIESCE_H

#include "wire.h"

#include <stdbool.h>

/* Asks gpuprof to hold the threads and waits for it, at most for seconds. Calls `meanwhile` every
 * few milliseconds; the wait ends when that returns false. Returns GP_QUIESCE_ALL_OUT or _WAITING
 * if they are held, else GP_QUIESCE_NONE. Only on the collector's thread. Call quiesce__end() in
 * any case. */
enum gp_quiesce quiesce__begin(struct gp_ring_page *page, bool (*meanwhile)(void));
/* Call it just before the work that needs the threads held. From here on gpuprof allows more time.
 * False: they run again, because it took too long or gpuprof has died. */
bool quiesce__use(struct gp_ring_page *page);
/* Lets the threads go on, or takes the request back. */
void quiesce__end(struct gp_ring_page *page);

/* Whether gpuprof shows no sign of life, so that it cannot hold threads. */
bool quiesce__is_silent(const struct gp_ring_page *page);

#endif /* GP_COLLECTOR_RUNTIME_QUIESCE_H */
