/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Holds a process's threads outside of CUDA when its collector asks for that, because CUPTI is
 * about to be attached or detached (collector/runtime/quiesce.h says why).
 */
#ifndef GP_CAPTURE_COLLECTOR_QUIESCE_H
#define GP_CAPTURE_COLLECTOR_QUIESCE_H

#include "capture/collector/ring_reader.h"
#include "inject/tracer.h"
#include "inspect/process/process.h"

#include <stdint.h>

/* All zero: the collector has not asked yet. */
struct collector_quiesce {
	uint64_t asked_ns; /* since when the collector waits; 0: it does not */
	uint64_t held_ns;  /* the threads, so far; the user's to set back */
};

/* If the collector waits, tries once, or refuses if that has been tried for long enough. `own`:
 * threads of this name are the collector's, which are not held. Takes tens of milliseconds, seconds
 * at worst; `meanwhile` is done in between. */
void collector_quiesce__serve(struct collector_quiesce *h, const struct target_process *p,
			      const char *own, struct ring_reader *r,
			      struct tracer_meanwhile meanwhile);

#endif /* GP_CAPTURE_COLLECTOR_QUIESCE_H */
