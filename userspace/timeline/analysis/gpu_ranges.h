/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Annotations on GPUs, as Kineto's gpu_user_annotation: for each annotation and stream, from the
 * begin of the first work that was launched in it to the end of the last. Work counts for the
 * innermost annotation around its launch.
 */
#ifndef GP_TIMELINE_ANALYSIS_GPU_RANGES_H
#define GP_TIMELINE_ANALYSIS_GPU_RANGES_H

#include "timeline/model/timeline.h"

struct gpu_range {
	uint32_t op; /* the annotation */
	uint32_t process, device, stream;
	uint64_t start_ns, end_ns;
};

struct gpu_ranges {
	VEC(struct gpu_range) items; /* ordered by their first work */
};

/* Finds the ranges. `shown`: uses shown_start_ns and shown_end_ns, and only work that is drawn on
 * the stream's own row. 0 or -ENOMEM; the owner calls gpu_ranges__done() either way. */
int gpu_ranges__find(const struct timeline *t, bool shown, struct gpu_ranges *ret_ranges);
void gpu_ranges__done(struct gpu_ranges *r);

#endif /* GP_TIMELINE_ANALYSIS_GPU_RANGES_H */
