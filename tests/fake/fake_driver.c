/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The part of the stand-in for libcuda.so.1 that gives the simulated GPU its work: launches and
 * memory through the driver's interface.
 */
#include "fake/fake_runtime.h"

#include <stdlib.h>
#include <string.h>

#define NO_MEMORY   2 /* CUDA_ERROR_OUT_OF_MEMORY */
#define MEMORY_MOST (16UL << 30)

/* Callback ids of the driver's interface. */
enum cbid {
	CBID_SET_WORDS = 220,
	CBID_ALLOC = 243,
	CBID_FREE = 245,
	CBID_LAUNCH = 307,
	CBID_CREATE = 549,
	CBID_RELEASE = 550,
	CBID_LAUNCH_EX = 652,
};

static void launch(struct fake_event *work, const char *name, uint32_t cbid)
{
	uint64_t start_ns;

	work->kind = FAKE_KERNEL;
	work->correlation_id = fake_gpu_begin(&start_ns);
	fake_gpu_submit(work);
	fake_gpu_end(work->correlation_id, start_ns, name, true, cbid);
}

/* A function is its name. */
int cuLaunchKernel(const void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
		   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
		   void *stream, void **arguments, void **extra)
{
	struct fake_event work = {
		.name = function,
		.stream = (uint32_t)(uintptr_t)stream,
		.grid = {grid_x, grid_y, grid_z},
		.block = {block_x, block_y, block_z},
		.shared_bytes = shared_bytes,
	};

	launch(&work, "cuLaunchKernel", CBID_LAUNCH);
	return 0;
}

/* A kernel's name is its handle here. */
int cuModuleGetFunction(const void **ret_function, void *module, const char *name)
{
	*ret_function = name;
	return 0;
}

/* Another handle: a copy. */
int cuKernelGetFunction(const void **ret_function, const void *kernel)
{
	*ret_function = strdup(kernel);
	return *ret_function ? 0 : NO_MEMORY;
}

int cuLaunchKernelEx(const struct fake_driver_config *config, const void *function,
		     void **arguments, void **extra)
{
	struct fake_event work = {
		.name = function,
		.stream = (uint32_t)(uintptr_t)config->stream,
		.grid = {config->grid[0], config->grid[1], config->grid[2]},
		.block = {config->block[0], config->block[1], config->block[2]},
		.shared_bytes = config->shared_bytes,
	};

	launch(&work, "cuLaunchKernelEx", CBID_LAUNCH_EX);
	return 0;
}

static int allocate(uint64_t *ret_memory, size_t bytes, const char *name, uint32_t cbid)
{
	uint64_t start_ns;
	uint32_t id = fake_gpu_begin(&start_ns);
	bool given = bytes <= MEMORY_MOST;

	/* Content is never touched. */
	*ret_memory = given ? (uint64_t)(uintptr_t)malloc(1) : 0;
	fake_gpu_end(id, start_ns, name, true, cbid);
	return given ? 0 : NO_MEMORY;
}

static int release(uint64_t memory, const char *name, uint32_t cbid)
{
	uint64_t start_ns;
	uint32_t id = fake_gpu_begin(&start_ns);

	free((void *)(uintptr_t)memory);
	fake_gpu_end(id, start_ns, name, true, cbid);
	return 0;
}

int cuMemAlloc_v2(uint64_t *ret_memory, size_t bytes)
{
	return allocate(ret_memory, bytes, "cuMemAlloc_v2", CBID_ALLOC);
}

int cuMemFree_v2(uint64_t memory)
{
	return release(memory, "cuMemFree_v2", CBID_FREE);
}

int cuMemCreate(uint64_t *ret_handle, size_t bytes, const void *properties,
		unsigned long long flags)
{
	return allocate(ret_handle, bytes, "cuMemCreate", CBID_CREATE);
}

int cuMemRelease(uint64_t handle)
{
	return release(handle, "cuMemRelease", CBID_RELEASE);
}

int cuMemsetD32Async(uint64_t memory, unsigned value, size_t words, void *stream)
{
	struct fake_event work = {
		.kind = FAKE_SET,
		.bytes = 4 * words,
		.stream = (uint32_t)(uintptr_t)stream,
	};
	uint64_t start_ns;

	work.correlation_id = fake_gpu_begin(&start_ns);
	fake_gpu_submit(&work);
	fake_gpu_end(work.correlation_id, start_ns, "cuMemsetD32Async", true, CBID_SET_WORDS);
	return 0;
}
