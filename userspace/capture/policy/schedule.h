/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * torch.profiler.schedule: what to do in which step.
 */
#ifndef GP_CAPTURE_POLICY_SCHEDULE_H
#define GP_CAPTURE_POLICY_SCHEDULE_H

#include "base/reason.h"

#include <stdbool.h>
#include <stdint.h>

struct schedule {
	uint32_t skip_first;
	uint32_t wait;
	uint32_t warmup;
	uint32_t active; /* 0: there is no schedule */
	uint32_t repeat; /* 0: for ever */
	bool skip_first_wait;
};

enum schedule_action {
	SCHEDULE_NONE = 0,
	SCHEDULE_WARMUP = 1,
	SCHEDULE_RECORD = 2,
	SCHEDULE_RECORD_AND_SAVE = 3,
};

/* "wait=1,warmup=1,active=3,repeat=2,skip_first=10,skip_first_wait=1", in any order; active alone
 * must be there. 0 or -EINVAL with a reason. */
int schedule_parse(const char *text, struct reason *why, struct schedule *ret_schedule);

/* What is to be done in this step; they count from 0. */
enum schedule_action schedule_action(const struct schedule *s, uint64_t step);

/* Whether nothing is left to do from this step on. */
bool schedule_is_over(const struct schedule *s, uint64_t step);

#endif /* GP_CAPTURE_POLICY_SCHEDULE_H */
