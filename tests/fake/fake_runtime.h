/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The functions of the stand-ins for the CUDA driver and runtime, by the names and arguments that
 * programs know.
 */
#ifndef GP_FAKE_FAKE_RUNTIME_H
#define GP_FAKE_FAKE_RUNTIME_H

#include "fake/fake_gpu.h"

/* ---- driver ---- */

struct fake_driver_config {
	unsigned grid[3], block[3], shared_bytes;
	void *stream;
};

FAKE_GPU_PUBLIC int cuDriverGetVersion(int *ret_version);
FAKE_GPU_PUBLIC int cuDeviceGetCount(int *ret_nr);
FAKE_GPU_PUBLIC int cuDeviceGet(int *ret_device, int ordinal);
FAKE_GPU_PUBLIC int cuDeviceGetName(char *ret_name, int bytes, int device);
FAKE_GPU_PUBLIC int cuDeviceTotalMem_v2(size_t *ret_bytes, int device);
FAKE_GPU_PUBLIC int cuDeviceGetAttribute(int *ret_value, int attribute, int device);
FAKE_GPU_PUBLIC int cuLaunchKernel(const void *function, unsigned grid_x, unsigned grid_y,
				   unsigned grid_z, unsigned block_x, unsigned block_y,
				   unsigned block_z, unsigned shared_bytes, void *stream,
				   void **arguments, void **extra);
FAKE_GPU_PUBLIC int cuLaunchKernelEx(const struct fake_driver_config *config, const void *function,
				     void **arguments, void **extra);
FAKE_GPU_PUBLIC int cuModuleGetFunction(const void **ret_function, void *module, const char *name);
FAKE_GPU_PUBLIC int cuKernelGetFunction(const void **ret_function, const void *kernel);
FAKE_GPU_PUBLIC int cuMemAlloc_v2(uint64_t *ret_memory, size_t bytes);
FAKE_GPU_PUBLIC int cuMemFree_v2(uint64_t memory);
FAKE_GPU_PUBLIC int cuMemCreate(uint64_t *ret_handle, size_t bytes, const void *properties,
				unsigned long long flags);
FAKE_GPU_PUBLIC int cuMemRelease(uint64_t handle);
FAKE_GPU_PUBLIC int cuMemsetD32Async(uint64_t memory, unsigned value, size_t words, void *stream);
FAKE_GPU_PUBLIC int cuInit(unsigned flags);

/* ---- runtime ---- */

struct dim3 {
	unsigned x, y, z;
};

struct fake_config {
	struct dim3 grid, block;
	size_t shared_bytes;
	void *stream, *attributes;
	unsigned attributes_nr;
};

struct fake_cuda_event {
	uint32_t id;
	uint64_t record_id, due_ns; /* of its last record */
};

FAKE_GPU_PUBLIC int cudaRuntimeGetVersion(int *ret_version);
FAKE_GPU_PUBLIC int cudaGetDeviceCount(int *ret_nr);
FAKE_GPU_PUBLIC int cudaGetDevice(int *ret_device);
FAKE_GPU_PUBLIC int cudaSetDevice(int device);
FAKE_GPU_PUBLIC int cudaMalloc(void **ret_memory, size_t bytes);
FAKE_GPU_PUBLIC int cudaMallocPitch(void **ret_memory, size_t *ret_pitch, size_t width,
				    size_t height);
FAKE_GPU_PUBLIC int cudaMallocManaged(void **ret_memory, size_t bytes, unsigned flags);
FAKE_GPU_PUBLIC int cudaMallocHost(void **ret_memory, size_t bytes);
FAKE_GPU_PUBLIC int cudaMallocAsync(void **ret_memory, size_t bytes, void *stream);
FAKE_GPU_PUBLIC int cudaFree(void *memory);
FAKE_GPU_PUBLIC int cudaFreeHost(void *memory);
FAKE_GPU_PUBLIC int cudaFreeAsync(void *memory, void *stream);
FAKE_GPU_PUBLIC int cudaStreamCreate(void **ret_stream);
FAKE_GPU_PUBLIC int cudaStreamSynchronize(void *stream);
FAKE_GPU_PUBLIC int cudaDeviceSynchronize(void);
FAKE_GPU_PUBLIC int cudaStreamQuery(void *stream);
FAKE_GPU_PUBLIC int cudaEventCreate(struct fake_cuda_event **ret_event);
FAKE_GPU_PUBLIC int cudaEventRecord(struct fake_cuda_event *event, void *stream);
FAKE_GPU_PUBLIC int cudaStreamWaitEvent(void *stream, struct fake_cuda_event *event,
					unsigned flags);
FAKE_GPU_PUBLIC int cudaEventSynchronize(struct fake_cuda_event *event);
FAKE_GPU_PUBLIC int cudaStreamBeginCapture(void *stream, int mode);
FAKE_GPU_PUBLIC int cudaStreamEndCapture(void *stream, void **ret_graph);
FAKE_GPU_PUBLIC int cudaGraphInstantiate(void **ret_exec, void *graph, unsigned long long flags);
FAKE_GPU_PUBLIC int cudaGraphLaunch(void *exec, void *stream);
FAKE_GPU_PUBLIC int cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind,
				    void *stream);
FAKE_GPU_PUBLIC int cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from,
				      size_t from_pitch, size_t width, size_t height, int kind,
				      void *stream);
FAKE_GPU_PUBLIC int cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device,
					size_t bytes, void *stream);
FAKE_GPU_PUBLIC int cudaMemsetAsync(void *to, int value, size_t bytes, void *stream);
FAKE_GPU_PUBLIC int cudaLaunchKernel(const void *function, struct dim3 grid, struct dim3 block,
				     void **arguments, size_t shared_bytes, void *stream);
FAKE_GPU_PUBLIC int cudaLaunchKernelExC(const struct fake_config *config, const void *function,
					void **arguments);

#endif /* GP_FAKE_FAKE_RUNTIME_H */
