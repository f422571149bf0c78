/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The peak performance of GPUs, and how much of it was used.
 */
#ifndef GP_TIMELINE_ANALYSIS_PEAK_H
#define GP_TIMELINE_ANALYSIS_PEAK_H

#include "timeline/model/timeline.h"

/* Floating-point operations a second, 0: not known. */
struct peak {
	double single;	 /* in 32 bits, without matrix units */
	double matrix16; /* of dense matrices in 16 bits, on matrix units */
};

/* Finds the peak of one GPU at its highest clock, from NVIDIA's documents. */
struct peak peak_of(const struct gp_ev_device *device);

struct gpu_flops {
	uint64_t flops;	  /* of the ops that had work on GPUs, as tl_op.all_flops counts */
	double per_s;	  /* over the whole capture, 0: it took no time */
	struct peak peak; /* of all GPUs in use together; 0 if one is not known */
};

/* 0 or -ENOMEM. */
int gpu_flops_find(const struct timeline *t, struct gpu_flops *ret_flops);

#endif /* GP_TIMELINE_ANALYSIS_PEAK_H */
