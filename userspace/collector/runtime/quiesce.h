/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * CUPTI comes and goes for all threads of the process at once, and a thread that is in a
 * call of CUDA at that moment may find half of it: CUPTI 13.0 then reads what is not there yet, or
 * spoils the heap as it goes. So gpuprof holds them still meanwhile, outside of CUDA. It must be
 * short, and what is done in it must not need another thread.
 */
#ifndef GP_COLLECTOR_RUNTIME_QUIESCE_H
#define GP_COLLECTOR_RUNTIME_QUIESCE_H

#include "wire.h"

#include <stdbool.h>

enum quiesce {
	QUIESCE_NONE = 0, /* gpuprof has gone, or could not: they run */
	QUIESCE_WAITING =
		1, /* they are held, some of them in a call of CUDA that waits for the GPU */
	QUIESCE_ALL_OUT = 2, /* they are held, and none is in a call of CUDA */
};

/* Waits until they are held, for seconds at most, and calls `meanwhile` every few milliseconds,
 * which ends it with false. On the collector's thread. quiesce__end() either way. */
enum quiesce quiesce__begin(struct gp_ring_page *page, bool (*meanwhile)(void));
/* Before what must not be done without. False: they run again, as gpuprof lets them if it takes too
 * long, or as they do once it has died. */
bool quiesce__use(struct gp_ring_page *page);
void quiesce__end(struct gp_ring_page *page);

/* Whether gpuprof gives no sign of life: it will hold nobody. */
bool quiesce__is_silent(const struct gp_ring_page *page);

#endif /* GP_COLLECTOR_RUNTIME_QUIESCE_H */
