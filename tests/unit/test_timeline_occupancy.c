/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Occupancy of kernels: known cases, and many more against NVIDIA's own calculator where a CUDA
 * toolkit is installed.
 */
#include "timeline/analysis/occupancy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#ifdef HAVE_CUDA
#include <limits.h>
#include <string.h>

#include <cuda_occupancy.h>
#endif

static const struct gp_ev_device devices[] = {
	/* V100, T4, A100, L40, H100 */
	{.major = 7,
	 .minor = 0,
	 .sms = 80,
	 .threads_per_sm = 2048,
	 .blocks_per_sm = 32,
	 .shared_per_sm = 98304,
	 .shared_per_block_optin = 98304},
	{.major = 7,
	 .minor = 5,
	 .sms = 40,
	 .threads_per_sm = 1024,
	 .blocks_per_sm = 16,
	 .shared_per_sm = 65536,
	 .shared_per_block_optin = 65536},
	{.major = 8,
	 .minor = 0,
	 .sms = 108,
	 .threads_per_sm = 2048,
	 .blocks_per_sm = 32,
	 .shared_per_sm = 167936,
	 .shared_per_block_optin = 166912,
	 .shared_reserved = 1024},
	{.major = 8,
	 .minor = 9,
	 .sms = 142,
	 .threads_per_sm = 1536,
	 .blocks_per_sm = 24,
	 .shared_per_sm = 102400,
	 .shared_per_block_optin = 101376,
	 .shared_reserved = 1024},
	{.major = 9,
	 .minor = 0,
	 .sms = 132,
	 .threads_per_sm = 2048,
	 .blocks_per_sm = 32,
	 .shared_per_sm = 233472,
	 .shared_per_block_optin = 232448,
	 .shared_reserved = 1024},
};

#define DEVICES_NR (sizeof(devices) / sizeof(devices[0]))

static struct tl_device device_of(size_t i)
{
	struct tl_device d = {.reported = devices[i]};

	d.reported.threads_per_block = 1024;
	d.reported.registers_per_block = d.reported.registers_per_sm = 65536;
	d.reported.warp_threads = 32;
	d.reported.shared_per_block = 49152;
	return d;
}

static struct tl_gpu kernel_of(uint32_t blocks, uint32_t threads, uint32_t registers,
			       int64_t shared_bytes)
{
	struct tl_gpu k = {.kind = TL_GPU_KERNEL};

	k.kernel.grid[0] = blocks;
	k.kernel.block[0] = threads;
	k.kernel.grid[1] = k.kernel.grid[2] = k.kernel.block[1] = k.kernel.block[2] = 1;
	k.kernel.registers = registers;
	k.kernel.shared_bytes = shared_bytes;
	return k;
}

static void test_known(void **state)
{
	struct tl_device a100 = device_of(2);
	struct tl_gpu k = kernel_of(1080, 256, 32, 0);
	struct occupancy o;

	assert_true(occupancy_of(&a100, &k, &o));
	assert_int_equal(o.active_blocks, 8);
	assert_true(o.blocks_per_sm == 10 && o.warps_per_sm == 80);
	assert_int_equal(o.percent, 100);
	/* Registers: 128 * 32 = 4096 a warp, 16 warps in all. */
	k = kernel_of(1080, 256, 128, 0);
	assert_true(occupancy_of(&a100, &k, &o));
	assert_int_equal(o.active_blocks, 2);
	assert_int_equal(o.percent, 25);
	/* A grid that does not fill the device. */
	k = kernel_of(54, 128, 16, 0);
	assert_true(occupancy_of(&a100, &k, &o));
	assert_int_equal(o.percent, 3);
}

static void test_not_known(void **state)
{
	struct tl_device none = {.process = 0}, a100 = device_of(2);
	struct tl_gpu k = kernel_of(1, 0, 0, 0);
	struct occupancy o;

	assert_false(occupancy_of(&a100, &k, &o));
	k = kernel_of(1, 2048, 0, 0);
	assert_false(occupancy_of(&a100, &k, &o));
	k = kernel_of(1, UINT32_MAX, 0, 0);
	k.kernel.block[1] = k.kernel.block[2] = UINT32_MAX;
	assert_false(occupancy_of(&a100, &k, &o));
	k = kernel_of(1, 32, UINT32_MAX, INT64_MAX);
	assert_true(occupancy_of(&a100, &k, &o));
	assert_int_equal(o.active_blocks, 0);
	k = kernel_of(1, 32, 0, -1);
	assert_true(occupancy_of(&a100, &k, &o));
	k = kernel_of(1, 32, 0, 0);
	assert_false(occupancy_of(&none, &k, &o));
}

#ifdef HAVE_CUDA

static int theirs(const struct gp_ev_device *d, int threads, int registers, size_t shared)
{
	cudaOccDeviceProp device = {
		.computeMajor = (int)d->major,
		.computeMinor = (int)d->minor,
		.maxThreadsPerBlock = (int)d->threads_per_block,
		.maxThreadsPerMultiprocessor = (int)d->threads_per_sm,
		.regsPerBlock = (int)d->registers_per_block,
		.regsPerMultiprocessor = (int)d->registers_per_sm,
		.warpSize = (int)d->warp_threads,
		.sharedMemPerBlock = d->shared_per_block,
		.sharedMemPerMultiprocessor = d->shared_per_sm,
		.numSms = (int)d->sms,
		.sharedMemPerBlockOptin = d->shared_per_block_optin,
		.reservedSharedMemPerBlock = d->shared_reserved,
	};
	cudaOccFuncAttributes function = {
		.maxThreadsPerBlock = INT_MAX,
		.numRegs = registers,
		.partitionedGCConfig = PARTITIONED_GC_OFF,
		.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN,
		.maxDynamicSharedSizeBytes = d->shared_per_block_optin,
	};
	cudaOccDeviceState settings = {.carveoutConfig = 100};
	cudaOccResult result;

	if (cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &function, &settings, threads,
						    shared))
		return -1;
	return result.activeBlocksPerMultiprocessor;
}

static void test_against_nvidia(void **state)
{
	static const size_t shared[] = {0, 1, 1000, 4096, 16384, 49152, 65000};
	size_t compared_nr = 0;

	for (size_t i = 0; i < DEVICES_NR; i++)
		for (int threads = 16; threads <= 1024; threads += 48)
			for (int registers = 8; registers <= 255; registers += 13)
				for (size_t s = 0; s < sizeof(shared) / sizeof(shared[0]); s++) {
					struct tl_device d = device_of(i);
					struct tl_gpu k =
						kernel_of(1, (uint32_t)threads, (uint32_t)registers,
							  (int64_t)shared[s]);
					int their =
						theirs(&d.reported, threads, registers, shared[s]);
					struct occupancy o;

					if (their < 0)
						continue;
					assert_true(occupancy_of(&d, &k, &o));
					if ((int)o.active_blocks != their)
						fail_msg("device %zu, %d threads, %d registers, "
							 "%zu bytes: %u, not %d",
							 i, threads, registers, shared[s],
							 o.active_blocks, their);
					compared_nr++;
				}
	assert_true(compared_nr > 10000);
}

#else

static void test_against_nvidia(void **state)
{
	skip();
}

#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known),
		cmocka_unit_test(test_not_known),
		cmocka_unit_test(test_against_nvidia),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
