/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * How much of a multiprocessor a kernel can fill, given what its blocks need.
 */
#ifndef GP_TIMELINE_ANALYSIS_OCCUPANCY_H
#define GP_TIMELINE_ANALYSIS_OCCUPANCY_H

#include "timeline/model/gpu.h"

struct occupancy {
	double blocks_per_sm; /* of the grid, spread evenly over all multiprocessors */
	double warps_per_sm;
	uint32_t active_blocks; /* that fit into one at a time */
	uint32_t percent;	/* estimated achieved occupancy, as in Kineto */
};

/* Computes it. False: the device's description lacks something, or the kernel cannot run there. */
bool occupancy_of(const struct tl_device *d, const struct tl_gpu *kernel,
		  struct occupancy *ret_occupancy);

#endif /* GP_TIMELINE_ANALYSIS_OCCUPANCY_H */
