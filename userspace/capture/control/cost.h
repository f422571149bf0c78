/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What a capture costs: measured or counted, while it runs. See FORMAT.md, description.
 */
#ifndef GP_CAPTURE_CONTROL_COST_H
#define GP_CAPTURE_CONTROL_COST_H

#include "capture/collector/client.h"
#include "capture/core/status.h"
#include "capture/policy/step_cost.h"

#include <stdbool.h>
#include <stdint.h>

struct control;
struct recording_writer;

/* What a capture keeps for it. */
struct cost_keeper {
	struct step_cost steps;
	uint64_t own_new_ns;   /* gpuprof's CPU time when it was made */
	uint64_t own_start_ns; /* and when it started */
	bool rests;	       /* the budget was muted since the last reading; set before each
				*/
	struct callback_cost timed, rest; /* by the collectors: all, and of those while it rested */
	uint64_t rest_seen_ns;
	uint64_t ops_seen, gpu_seen, hits_before, hits_seen;
	uint64_t hit_read_ns;
	double hit_ns; /* of a probe, 0: not known */
	/* Charged as they came, by what was known then; capture_cost is by what is known now. */
	double charged_ns;
	/* What the recordings that have ended say. */
	struct capture_cost reported;
	uint64_t setup_emitted_ns, stops_emitted_ns;
};

/* The capture is made, and starts. */
void cost_new(struct control *c);
void cost_start(struct control *c);

/* All there is by now. `ret_charged_ns`: callbacks and probes as they were known when they came,
 * rather too much than too little; never smaller than before. */
void cost_read(struct control *c, struct capture_cost *ret_cost, uint64_t *ret_charged_ns);

/* What has come since the last recording ended, into the description. 0 or -errno. */
int cost_write(struct control *c, struct recording_writer *w);

#endif /* GP_CAPTURE_CONTROL_COST_H */
