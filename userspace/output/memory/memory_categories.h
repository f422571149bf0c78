/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The bytes that one device of one process held in each category, over time. The memory page and
 * torch.profiler's memory timeline show them. Private to this room.
 */
#ifndef GP_OUTPUT_MEMORY_MEMORY_CATEGORIES_H
#define GP_OUTPUT_MEMORY_MEMORY_CATEGORIES_H

#include "timeline/model/timeline.h"

/* The bytes held from a time on. */
struct category_row {
	int64_t time_us; /* since the epoch; -1: what was there before the capture */
	int64_t bytes[TL_CATEGORIES];
};

struct category_rows {
	VEC(struct category_row) items; /* one for each microsecond with a change, in their order */
	bool thinned;
};

/* Finds the rows of a device (GP_TENSOR_CPU and on), at most max_nr of them (0: all): of each
 * stretch of time the first, the one with most bytes and the last. 0 or -ENOMEM; the caller frees
 * with vec_done(&ret_rows->items). */
int category_rows__init(struct category_rows *ret_rows, const struct timeline *t, uint32_t process,
			uint8_t device, size_t max_nr);

/* "PARAMETER", ... "Unknown", as torch.profiler has them. */
const char *category_name(enum tl_category category);

#endif /* GP_OUTPUT_MEMORY_MEMORY_CATEGORIES_H */
