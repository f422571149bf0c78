/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Annotations on GPUs: of each one, on each stream, from the first work that was launched in it to
 * the end of the last, as Kineto makes its gpu_user_annotation. Work counts for the innermost one
 * that is around its launch.
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
	VEC(struct gpu_range) items; /* in order of their first work's */
};

/* `shown`: by shown_start_ns and shown_end_ns, of work alone that is drawn on the stream's own row.
 * 0 or -ENOMEM; the owner calls gpu_ranges__done() either way. */
int gpu_ranges__find(const struct timeline *t, bool shown, struct gpu_ranges *ret_ranges);
void gpu_ranges__done(struct gpu_ranges *r);

#endif /* GP_TIMELINE_ANALYSIS_GPU_RANGES_H */
