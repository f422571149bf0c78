/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Brings what the collector records in line with what gpuprof wants (`wanted` in the ring's page),
 * and reports what is in force, what failed and why. All of it on the collector's thread.
 */
#ifndef GP_COLLECTOR_FEATURES_H
#define GP_COLLECTOR_FEATURES_H

#include "collector/runtime/ring_writer.h"
#include "collector/torch/ops.h"

#include <stdbool.h>
#include <stdint.h>

/* All masks are bits of enum gp_feature. */
struct features {
	struct gp_ring_page *page;
	struct ring_writer *ring;
	struct ops_extras extras; /* as gpuprof wanted them when the ops were armed */
	struct gp_python python;  /* own copy: the process may overwrite the page */
	uint32_t wanted;	  /* as of the last poll */
	uint32_t active;	  /* as reported; own copies, too */
	uint32_t failed;
	uint32_t refused;	   /* final until no longer wanted */
	uint32_t turns;		   /* polls so far */
	uint32_t cupti_not_before; /* the turn from which CUPTI may be tried again */
	uint32_t cupti_pause;	   /* turns until then, at the next failure */
	const char *ops_why, *memory_why, *cupti_why;
};

/* Nothing is in force. `ring` is open, and stays until features__disarm(). */
void features__init(struct features *f, struct ring_writer *ring);

/* Writes what is in force and what failed into the page, with the reasons. */
void features__report(struct features *f, uint32_t active, uint32_t failed);

/* One turn: arms and disarms as wanted, and takes what CUPTI has. May take seconds. */
void features__poll(struct features *f);

/* Disarms everything; may take seconds. False: a thread is stuck inside a callback, so the ring
 * must stay mapped. */
bool features__disarm(struct features *f);

#endif /* GP_COLLECTOR_FEATURES_H */
