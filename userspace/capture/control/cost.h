/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What a capture costs: measured or counted, while it runs. See FORMAT.md, description.
 */
#ifndef GP_CAPTURE_CONTROL_COST_H
#define GP_CAPTURE_CONTROL_COST_H

#include "capture/collector/client.h"
#include "capture/policy/step_cost.h"

#include <stdbool.h>
#include <stdint.h>

struct capture;
struct traced_process;
struct recording_writer;

/* Nanoseconds of CPU time since the capture started. */
struct capture_cost {
	uint64_t cpu_ns; /* that the targets used, `inside` included */
	/* Operators told by the collectors: counted, times what one costs; and rest_ns. */
	uint64_t callbacks_ns;
	uint64_t
		rest_ns; /* callbacks while annotations alone are told: estimated from timed ones */
	uint64_t gpu_ns; /* records of CUPTI: counted, times what one is assumed to cost */
	uint64_t probes_ns;    /* hits of probes: counted, times what one costs */
	uint64_t collector_ns; /* the collectors' own threads: measured */
	uint64_t samples_ns;   /* the program that interrupts threads to sample them: measured */
	/* What they lose beside it: the interrupt, caches. Estimated from samples_ns. */
	uint64_t samples_around_ns;
	uint64_t own_ns;    /* gpuprof itself: measured */
	uint64_t inside_ns; /* in the targets */
	uint64_t cost_ns;   /* all */
	/* One operator: by comparing steps if op_known, else estimated from timed callbacks, 0: not
	 * known. */
	double op_ns, op_error_ns;
	bool op_known;
};

/* Nanoseconds that go on, from the first reading. */
struct cost_clock {
	uint64_t begin_ns, last_ns;
};

/* What a capture keeps for it. */
struct cost_keeper {
	struct step_cost steps;
	uint64_t gone_cpu_ns, gone_collector_ns; /* of processes that are gone */
	uint64_t since_ns;			 /* when the capture started */
	uint64_t own_new_ns;			 /* gpuprof's CPU time when it was made */
	uint64_t own_start_ns;			 /* and when it started */
	uint64_t stops_ns; /* for which threads of targets were borrowed or held */
	bool rests; /* since the last reading annotations alone have been told, to be set before one
		     */
	struct callback_cost timed, rest; /* by the collectors: all, and of those while it rested */
	uint64_t rest_seen_ns;
	uint64_t ops_seen, gpu_seen, hits_before, hits_seen;
	uint64_t hit_read_ns;
	double hit_ns; /* of a probe, 0: not known */
	/* Charged as they came, by what was known then; capture_cost is by what is known now. */
	double charged_ns;
	/* What the recordings that have ended were told. */
	struct capture_cost reported;
	uint64_t setup_emitted_ns, stops_emitted_ns;
};

/* The capture is made, and starts. */
void cost_new(struct capture *c);
void cost_start(struct capture *c);

/* All there is by now. `ret_charged_ns`: callbacks and probes as they were known when they came,
 * rather too much than too little; never smaller than before. */
void cost_read(struct capture *c, struct capture_cost *ret_cost, uint64_t *ret_charged_ns);

/* CPU time that the targets have used since the capture's start. */
uint64_t cost_targets_ns(struct capture *c);

/* A process and its collector are about to be forgotten. */
void cost_forget(struct capture *c, struct traced_process *m);

/* What collectors have timed of callbacks. */
struct callback_cost cost_timed(const struct capture *c);

/* What has come since the last recording ended, into the description. 0 or -errno. */
int cost_write(struct capture *c, struct recording_writer *w);

#endif /* GP_CAPTURE_CONTROL_COST_H */
