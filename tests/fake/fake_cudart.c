/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The stand-in for libcudart.so.12: the runtime's calls that the tests make, by their real names
 * and arguments. A kernel's function is a string that never goes away, its name; a stream is its
 * number. Memory is the host's, and copies do not touch it.
 */
#include "fake/fake_gpu.h"

#include <stdlib.h>

#define PUBLIC	       FAKE_GPU_PUBLIC
#define DEFAULT_STREAM 7
#define FIRST_STREAM   13

/* Callback ids of the runtime's interface. */
enum cbid {
	CBID_DEVICE_COUNT = 3,
	CBID_GET_DEVICE = 17,
	CBID_MALLOC = 20,
	CBID_FREE = 22,
	CBID_COPY = 41,
	CBID_SET = 51,
	CBID_STREAM_CREATE = 129,
	CBID_STREAM_SYNC = 131,
	CBID_LAUNCH = 211,
};

struct dim3 {
	unsigned x, y, z;
};

PUBLIC int cudaGetDeviceCount(int *ret_nr);
PUBLIC int cudaGetDevice(int *ret_device);
PUBLIC int cudaMalloc(void **ret_memory, size_t bytes);
PUBLIC int cudaFree(void *memory);
PUBLIC int cudaStreamCreate(void **ret_stream);
PUBLIC int cudaStreamSynchronize(void *stream);
PUBLIC int cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, void *stream);
PUBLIC int cudaMemsetAsync(void *to, int value, size_t bytes, void *stream);
PUBLIC int cudaLaunchKernel(const void *function, struct dim3 grid, struct dim3 block,
			    void **arguments, size_t shared_bytes, void *stream);

static uint32_t number_of(void *stream)
{
	return stream ? (uint32_t)(uintptr_t)stream : DEFAULT_STREAM;
}

int cudaGetDeviceCount(int *ret_nr)
{
	uint64_t start_ns;
	uint32_t id = fake_gpu_begin(&start_ns);

	*ret_nr = 1;
	fake_gpu_end(id, start_ns, "cudaGetDeviceCount_v3020", false, CBID_DEVICE_COUNT);
	return 0;
}

int cudaGetDevice(int *ret_device)
{
	uint64_t start_ns;
	uint32_t id = fake_gpu_begin(&start_ns);

	*ret_device = 0;
	fake_gpu_end(id, start_ns, "cudaGetDevice_v3020", false, CBID_GET_DEVICE);
	return 0;
}

int cudaMalloc(void **ret_memory, size_t bytes)
{
	uint64_t start_ns;
	uint32_t id = fake_gpu_begin(&start_ns);

	*ret_memory = malloc(bytes);
	fake_gpu_end(id, start_ns, "cudaMalloc_v3020", false, CBID_MALLOC);
	return *ret_memory ? 0 : 2;
}

int cudaFree(void *memory)
{
	uint64_t start_ns;
	uint32_t id = fake_gpu_begin(&start_ns);

	free(memory);
	fake_gpu_end(id, start_ns, "cudaFree_v3020", false, CBID_FREE);
	return 0;
}

int cudaStreamCreate(void **ret_stream)
{
	static uint32_t next = FIRST_STREAM;
	uint64_t start_ns;
	uint32_t id = fake_gpu_begin(&start_ns);

	*ret_stream = (void *)(uintptr_t)__atomic_fetch_add(&next, 1, __ATOMIC_RELAXED);
	fake_gpu_end(id, start_ns, "cudaStreamCreate_v3020", false, CBID_STREAM_CREATE);
	return 0;
}

int cudaStreamSynchronize(void *stream)
{
	uint64_t start_ns;
	uint32_t id = fake_gpu_begin(&start_ns);

	fake_gpu_wait(number_of(stream), id);
	fake_gpu_end(id, start_ns, "cudaStreamSynchronize_v3020", false, CBID_STREAM_SYNC);
	return 0;
}

int cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, void *stream)
{
	struct fake_event work = {
		.kind = FAKE_COPY,
		.bytes = bytes,
		.copy_kind = (uint8_t)kind,
		.stream = number_of(stream),
	};
	uint64_t start_ns;

	work.correlation_id = fake_gpu_begin(&start_ns);
	fake_gpu_submit(&work);
	fake_gpu_end(work.correlation_id, start_ns, "cudaMemcpyAsync_v3020", false, CBID_COPY);
	return 0;
}

int cudaMemsetAsync(void *to, int value, size_t bytes, void *stream)
{
	struct fake_event work = {
		.kind = FAKE_SET,
		.bytes = bytes,
		.stream = number_of(stream),
	};
	uint64_t start_ns;

	work.correlation_id = fake_gpu_begin(&start_ns);
	fake_gpu_submit(&work);
	fake_gpu_end(work.correlation_id, start_ns, "cudaMemsetAsync_v3020", false, CBID_SET);
	return 0;
}

int cudaLaunchKernel(const void *function, struct dim3 grid, struct dim3 block, void **arguments,
		     size_t shared_bytes, void *stream)
{
	struct fake_event work = {
		.kind = FAKE_KERNEL,
		.name = function,
		.stream = number_of(stream),
		.grid = {grid.x, grid.y, grid.z},
		.block = {block.x, block.y, block.z},
		.shared_bytes = (uint32_t)shared_bytes,
	};
	uint64_t start_ns;

	work.correlation_id = fake_gpu_begin(&start_ns);
	fake_gpu_submit(&work);
	fake_gpu_end(work.correlation_id, start_ns, "cudaLaunchKernel_v7000", false, CBID_LAUNCH);
	return 0;
}
