/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Both ends of a collector's ring in one process, for the unit tests.
 */
#ifndef GP_UNIT_COLLECTOR_HELP_H
#define GP_UNIT_COLLECTOR_HELP_H

#include "capture/collector/ring_reader.h"
#include "common/clock.h"

#include <stddef.h>
#include <stdint.h>

/* The process index that the tests' rings are opened with. */
#define HELP_PROCESS 5
/* The bits that all instances of that process begin with. */
#define HELP_PREFIX (1ULL << 63 | (uint64_t)HELP_PROCESS << 52)

/* The events that a drain gave. */
struct seen {
	size_t ops_nr, names_nr;
	struct gp_ev_op last_op;
	char last_name[GP_RING_NAME_BYTES + 1];
	uint32_t last_name_id;
	int stop_after; /* > 0: the callback stops the drain after so many events */
};

/* The callback for ring_reader__drain(); arg is a struct seen. */
int seen_event(const void *event, size_t bytes, void *arg);

/* A counter of the ring. */
uint64_t help_loss(const struct ring_reader *r, enum gp_loss what);

/* An op that passes every check: instance number `nr`, no parent. */
struct gp_ev_op help_op(uint32_t nr);

#endif /* GP_UNIT_COLLECTOR_HELP_H */
