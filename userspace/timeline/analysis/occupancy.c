/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Applies NVIDIA's published rules for compute capability 5 and later. Registers are given to warps
 * in units of 256, from four parts of the multiprocessor; shared memory comes in units of 128 or
 * 256 bytes. A unit test compares the results with NVIDIA's own calculator where its header is
 * installed.
 */
#include "timeline/analysis/occupancy.h"

#include <math.h>

#include "base/banned.h"

#define REGISTER_UNIT 256
#define PARTS	      4 /* of a multiprocessor */

static uint64_t round_up(uint64_t value, uint64_t unit)
{
	return (value + unit - 1) / unit * unit;
}

/* Drivers before CUDA 11.0 do not report it. */
static uint32_t blocks_limit(const struct gp_ev_device *d)
{
	return d->blocks_per_sm ? d->blocks_per_sm : 32;
}

static uint64_t by_registers(const struct gp_ev_device *d, const struct tl_gpu *k, uint64_t warps)
{
	uint64_t of_warp = round_up((uint64_t)k->kernel.registers * d->warp_threads, REGISTER_UNIT);
	uint64_t of_part;

	if (!of_warp)
		return UINT32_MAX;
	of_part = d->registers_per_sm / PARTS / of_warp;
	return of_part * PARTS / warps;
}

static uint64_t by_shared(const struct gp_ev_device *d, const struct tl_gpu *k)
{
	uint64_t unit = d->major < 8 ? 256 : 128, bytes;

	if (k->kernel.shared_bytes < 0)
		return 0;
	bytes = round_up((uint64_t)k->kernel.shared_bytes + d->shared_reserved, unit);
	return bytes ? d->shared_per_sm / bytes : UINT32_MAX;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

bool occupancy_of(const struct tl_device *device, const struct tl_gpu *kernel,
		  struct occupancy *ret_occupancy)
{
	const struct gp_ev_device *d = &device->reported;
	const uint32_t *grid = kernel->kernel.grid, *block = kernel->kernel.block;
	uint64_t threads = (uint64_t)block[0] * block[1];
	double blocks = (double)grid[0] * grid[1] * grid[2];
	struct occupancy o;
	uint64_t warps, active;

	if (!d->sms || !d->warp_threads || !d->threads_per_sm || !block[2] || !threads ||
	    threads > d->threads_per_block || threads * block[2] > d->threads_per_block)
		return false;
	threads *= block[2];
	warps = (threads + d->warp_threads - 1) / d->warp_threads;
	active = least(d->threads_per_sm / d->warp_threads / warps, blocks_limit(d));
	active = least(active, least(by_registers(d, kernel, warps), by_shared(d, kernel)));
	o.blocks_per_sm = blocks / d->sms;
	o.warps_per_sm = o.blocks_per_sm * (double)threads / d->warp_threads;
	o.active_blocks = (uint32_t)active;
	o.percent = (uint32_t)lround(100 * fmin((double)active, o.blocks_per_sm) * (double)threads /
				     d->threads_per_sm);
	*ret_occupancy = o;
	return true;
}
