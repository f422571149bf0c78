/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What it costs a thread that its operators are reported, measured on the thread itself: the CPU
 * time of steps inside windows against that of the steps right before and after, window by window.
 * That includes what PyTorch does for a callback, and cold caches.
 */
#ifndef GP_CAPTURE_POLICY_STEP_COST_H
#define GP_CAPTURE_POLICY_STEP_COST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STEP_COST_NEAR	16  /* so many readings of plain steps on each side count for a window */
#define STEP_COST_PAIRS 101 /* windows that count: the latest ones */

struct step_cost_sum {
	double cpu_ns;
	uint64_t ops;
	uint32_t nr;
};

struct step_cost {
	double plain_ns[STEP_COST_NEAR]; /* means of the latest plain steps, in a ring */
	size_t plain_nr, plain_at;
	struct step_cost_sum before, traced, after;
	double pairs[STEP_COST_PAIRS]; /* ns an op */
	size_t pairs_nr, pairs_at;
};

/* Some steps in a row, all plain or all traced, with the thread's CPU time in them and the
 * operators told of it. In order. */
void step_cost__steps(struct step_cost *s, bool traced, uint32_t nr, uint64_t cpu_ns, uint32_t ops);

/* Nanoseconds that one operator costs: the median over windows, and its standard error. False while
 * there are too few windows to say. It may be negative where it drowns in how steps differ. */
bool step_cost__per_op(const struct step_cost *s, double *ret_ns, double *ret_error_ns);

#endif /* GP_CAPTURE_POLICY_STEP_COST_H */
