/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Times of operators without what watching those within them cost, as far as it was measured: the
 * collector takes an operator's begin last in the one callback and its end first in the other, so
 * both lie in the time of the op around it. Each counts as long as the mean of the callbacks that
 * were timed, so what comes out is an estimate; what PyTorch does for a callback stays in. Of the
 * kind that TAU calls compensation: A. D. Malony, S. S. Shende, "Overhead Compensation in
 * Performance Profiling", Euro-Par 2004.
 */
#ifndef GP_TIMELINE_BUILD_COMPENSATE_H
#define GP_TIMELINE_BUILD_COMPENSATE_H

#include "base/reason.h"
#include "timeline/model/timeline.h"

struct compensation {
	uint64_t callback_ns; /* 0: nothing is taken off */
	uint64_t timed_nr;    /* callbacks whose mean that is */
	/* Of each op, how many others that were seen by callback are in it; NULL: nothing is taken
	 * off. */
	struct compensated {
		uint32_t self_nr; /* right in it */
		uint32_t all_nr;
	} * ops;
};

/* To be given to compensation__done(). 0, -EINVAL where the recording does not tell what callbacks
 * took, or -ENOMEM, with a reason. */
int compensation__find(const struct timeline *t, struct reason *why, struct compensation *ret);
/* Nothing more is taken off after it. */
void compensation__done(struct compensation *c);

/* CPU time of an op, in itself and with all that it calls, in ns. Below 0 where its callbacks were
 * shorter than the mean: to be added up as it is. */
int64_t compensation__self_ns(const struct compensation *c, const struct timeline *t, uint32_t op);
int64_t compensation__total_ns(const struct compensation *c, const struct timeline *t, uint32_t op);

#endif /* GP_TIMELINE_BUILD_COMPENSATE_H */
