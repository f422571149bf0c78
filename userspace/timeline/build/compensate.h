/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Removes from an operator's time what observing the operators within it cost, as far as that was
 * measured. The collector takes an operator's begin last in one callback and its end first in the
 * other, so both callbacks count for the enclosing operator. Each is assumed to take the mean of
 * those that were timed, so the result is an estimate; what PyTorch itself does for a callback
 * stays in. TAU calls this compensation: A. D. Malony, S. S. Shende, "Overhead Compensation in
 * Performance Profiling", Euro-Par 2004.
 */
#ifndef GP_TIMELINE_BUILD_COMPENSATE_H
#define GP_TIMELINE_BUILD_COMPENSATE_H

#include "base/reason.h"
#include "timeline/model/timeline.h"

struct compensation {
	uint64_t callback_ns; /* 0: nothing is removed */
	uint64_t timed_nr;    /* callbacks that the mean is from */
	/* By op: how many ops seen by callback are in it; NULL: nothing is removed. */
	struct compensated {
		uint32_t self_nr; /* direct children */
		uint32_t all_nr;
	} * ops;
};

/* Initializes; call compensation__done() either way. 0, -EINVAL if the recording does not report
 * the cost of callbacks, or -ENOMEM, with a reason. */
int compensation__find(const struct timeline *t, struct reason *why, struct compensation *ret);
/* Frees it; from then on nothing is removed. */
void compensation__done(struct compensation *c);

/* The CPU time of an op in ns, in itself and with all that it calls. Below 0 where its callbacks
 * took less than the mean: add it up as it is. */
int64_t compensation__self_ns(const struct compensation *c, const struct timeline *t, uint32_t op);
int64_t compensation__total_ns(const struct compensation *c, const struct timeline *t, uint32_t op);

#endif /* GP_TIMELINE_BUILD_COMPENSATE_H */
