/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * How often there may be a window of a set length so that what it costs keeps to a share of the
 * target's CPU time. Neither its length nor when it comes follows from what is seen in it: else
 * what costs more would be seen less. How dense windows are follows what they cost, at once where
 * that is more than before, within minutes where it is less. Pure: times and costs in, decisions
 * out; capture/control/gpu_windows.c carries them out.
 */
#ifndef GP_CAPTURE_POLICY_DUTY_CYCLE_H
#define GP_CAPTURE_POLICY_DUTY_CYCLE_H

#include "capture/policy/budget.h"

struct duty_cycle {
	double share;	  /* of the target's CPU time that may be spent */
	double earned;	  /* of it, nanoseconds a nanosecond: over minutes */
	double burn;	  /* what a window costs, likewise */
	double tokens_ns; /* earned and not spent */
	uint64_t next_ns; /* when the next window may open */
	uint64_t length_ns;
	struct budget_account last;
	uint64_t known_ns;  /* for how long `earned` has been looked at */
	uint64_t closed_ns; /* the last window */
	uint32_t windows_nr;
	uint32_t random;
};

/* `percent` is above 0. The first window may open at once. */
void duty_cycle__init(struct duty_cycle *p, double percent, const struct budget_account *begin);

/* Time has gone on. */
void duty_cycle__account(struct duty_cycle *p, const struct budget_account *a);

/* The same where nothing was wanted meanwhile: nothing is earned in it, and nothing spent. */
void duty_cycle__skip(struct duty_cycle *p, const struct budget_account *a);

/* Whether a window may open, nanoseconds; how long it will be is in p->length_ns. */
bool duty_cycle__may_open(const struct duty_cycle *p, uint64_t now_ns);

/* One that was open for so long has cost that much. Whether the next one may follow it at once. */
bool duty_cycle__had(struct duty_cycle *p, uint64_t now_ns, uint64_t open_ns, double cost_ns);

#endif /* GP_CAPTURE_POLICY_DUTY_CYCLE_H */
