/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Estimates the whole from windows: sums over the windows of a capture within a budget become
 * estimates for all of its steps, or for all of its time where steps are not known. A ratio
 * estimator whose units are windows; its standard error comes from how much windows differ.
 */
#ifndef GP_TIMELINE_READ_ESTIMATE_H
#define GP_TIMELINE_READ_ESTIMATE_H

#include "base/hash.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

struct timeline;

/* The value and its standard error; NAN: not known, as with a single window. */
struct estimate {
	double value, error;
};

enum estimate_of {
	ESTIMATE_CALLS = 0,
	ESTIMATE_SELF_CPU_NS = 1,
	ESTIMATE_CPU_TOTAL_NS = 2,
	ESTIMATE_SELF_CUDA_NS = 3,
	ESTIMATE_CUDA_TOTAL_NS = 4,
	ESTIMATES_NR = 5,
};

struct estimate_cell {
	uint32_t row;
	uint32_t window;
	double sums[ESTIMATES_NR];
};

/* All zero but for the timeline. The owner calls estimator__done(). */
struct estimator {
	const struct timeline *t;
	struct hash cell_of; /* row and window -> of cells */
	VEC(struct estimate_cell) cells;
};

void estimator__done(struct estimator *e);

/* Adds values that began at start_ns to a row. Does nothing if no window holds that time. 0 or
 * -ENOMEM. */
int estimator__add(struct estimator *e, uint32_t row, uint64_t start_ns,
		   const double values[ESTIMATES_NR]);

/* Estimates for rows 0 to rows_nr - 1. 0 or -ENOMEM. */
int estimator__finish(struct estimator *e, uint32_t rows_nr,
		      struct estimate (**ret_rows)[ESTIMATES_NR]);

/* Whether the recording allows estimates: it has windows, all of one capture. */
bool estimate_is_possible(const struct timeline *t);

/* How many times itself the content of windows stands for, apart from their weights; 0: not
 * known. */
double estimate_expansion(const struct timeline *t);

/* Whether the windows are of whole steps, so that the estimate is for all steps. */
bool estimate_is_by_steps(const struct timeline *t);

#endif /* GP_TIMELINE_READ_ESTIMATE_H */
