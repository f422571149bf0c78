/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What is watched for while a capture goes on: a slow step, memory that is refused, a program that
 * stands still. Each is written into the recording that is in progress. Private to this room.
 */
#ifndef GP_CAPTURE_CONTROL_TRIGGERS_H
#define GP_CAPTURE_CONTROL_TRIGGERS_H

#include "capture/private.h"

/* Steps that the median is of. */
#define TRIGGER_STEPS 100

struct triggers {
	struct capture_triggers options;
	struct step_finder *finder;
	uint64_t step_ns;  /* when the step that runs began; 0: steps are not known yet */
	uint64_t steps_nr; /* that have ended */
	uint64_t recent_ns[TRIGGER_STEPS];
	uint64_t usual_ns; /* their median, brought up to date now and then; 0: too few yet */
	uint64_t alive_ns; /* the last sign of life */
	uint32_t alive_tid;
	bool hang_emitted;
	bool fired;
	struct gp_ev_trigger last;
	/* Of what has fired: the last request refused, whether the ops in which it was have ended,
	 * and when they are no longer waited for (0: none was refused). */
	struct gp_ev_head refused;
	bool unwound;
	uint64_t unwind_until_ns;
};

/* NULL: out of memory. */
struct triggers *triggers__new(const struct capture_triggers *options);
void triggers__free(struct triggers *t);

/* An event is on its way into a recording; of an op, its name. 0 or -errno. */
int triggers_event(struct capture *c, const void *event);
int triggers_op(struct capture *c, const struct gp_ev_op *op, const char *name);

/* Between two drains: whether something has gone on for too long. */
void triggers_poll(struct capture *c);

#endif /* GP_CAPTURE_CONTROL_TRIGGERS_H */
