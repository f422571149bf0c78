/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The catalogue of the CUDA API and NCCL, sorted by name. Old versions of a driver function
 * ("cuMemAlloc" beside "cuMemAlloc_v2") have other arguments and no callers.
 */
#include "probe/plan/cuda_api.h"

#include "wire.h"

#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 64

struct function {
	const char *name;
	uint8_t layout;
};

static const struct function functions[] = {
	{"cuCtxSynchronize", GP_API_PLAIN | GP_API_IS_DRIVER},
	{"cuCtxSynchronize_v2", GP_API_PLAIN | GP_API_IS_DRIVER},
	{"cuEventQuery", GP_API_PLAIN | GP_API_IS_DRIVER},
	{"cuEventRecord", GP_API_STREAM_2 | GP_API_IS_DRIVER},
	{"cuEventRecordWithFlags", GP_API_STREAM_2 | GP_API_IS_DRIVER},
	{"cuEventSynchronize", GP_API_PLAIN | GP_API_IS_DRIVER},
	{"cuGraphInstantiateWithFlags", GP_API_PLAIN | GP_API_IS_DRIVER},
	{"cuGraphLaunch", GP_API_STREAM_2 | GP_API_IS_DRIVER},
	{"cuKernelGetFunction", GP_API_FUNCTION_OF | GP_API_IS_DRIVER},
	{"cuLaunchCooperativeKernel", GP_API_LAUNCH_DRIVER | GP_API_IS_DRIVER},
	{"cuLaunchHostFunc", GP_API_STREAM_1 | GP_API_IS_DRIVER},
	{"cuLaunchKernel", GP_API_LAUNCH_DRIVER | GP_API_IS_DRIVER},
	{"cuLaunchKernelEx", GP_API_LAUNCH_DRIVER_EX | GP_API_IS_DRIVER},
	{"cuLibraryGetKernel", GP_API_FUNCTION | GP_API_IS_DRIVER},
	{"cuMemAllocAsync", GP_API_ALLOC_ASYNC | GP_API_IS_DRIVER},
	{"cuMemAllocFromPoolAsync", GP_API_ALLOC_POOL | GP_API_IS_DRIVER},
	{"cuMemAllocHost_v2", GP_API_ALLOC_HOST | GP_API_IS_DRIVER},
	{"cuMemAllocManaged", GP_API_ALLOC_MANAGED | GP_API_IS_DRIVER},
	{"cuMemAllocPitch_v2", GP_API_ALLOC_PITCH | GP_API_IS_DRIVER},
	{"cuMemAlloc_v2", GP_API_ALLOC | GP_API_IS_DRIVER},
	{"cuMemCreate", GP_API_ALLOC_PHYSICAL | GP_API_IS_DRIVER},
	{"cuMemFreeAsync", GP_API_FREE_ASYNC | GP_API_IS_DRIVER},
	{"cuMemFreeHost", GP_API_FREE_HOST | GP_API_IS_DRIVER},
	{"cuMemFree_v2", GP_API_FREE | GP_API_IS_DRIVER},
	{"cuMemHostAlloc", GP_API_ALLOC_HOST | GP_API_IS_DRIVER},
	{"cuMemRelease", GP_API_FREE_PHYSICAL | GP_API_IS_DRIVER},
	{"cuMemcpy", GP_API_BYTES | GP_API_IS_DRIVER},
	{"cuMemcpy2DAsync_v2", GP_API_STREAM_2 | GP_API_IS_DRIVER},
	{"cuMemcpy2D_v2", GP_API_PLAIN | GP_API_IS_DRIVER},
	{"cuMemcpy3DAsync_v2", GP_API_STREAM_2 | GP_API_IS_DRIVER},
	{"cuMemcpy3D_v2", GP_API_PLAIN | GP_API_IS_DRIVER},
	{"cuMemcpyAsync", GP_API_BYTES_ASYNC | GP_API_IS_DRIVER},
	{"cuMemcpyDtoDAsync_v2", GP_API_BYTES_ASYNC | GP_API_IS_DRIVER},
	{"cuMemcpyDtoD_v2", GP_API_BYTES | GP_API_IS_DRIVER},
	{"cuMemcpyDtoHAsync_v2", GP_API_BYTES_ASYNC | GP_API_IS_DRIVER},
	{"cuMemcpyDtoH_v2", GP_API_BYTES | GP_API_IS_DRIVER},
	{"cuMemcpyHtoDAsync_v2", GP_API_BYTES_ASYNC | GP_API_IS_DRIVER},
	{"cuMemcpyHtoD_v2", GP_API_BYTES | GP_API_IS_DRIVER},
	{"cuMemcpyPeer", GP_API_COPY_PEER | GP_API_IS_DRIVER},
	{"cuMemcpyPeerAsync", GP_API_COPY_PEER_ASYNC | GP_API_IS_DRIVER},
	{"cuMemsetD16Async", GP_API_HALVES_ASYNC | GP_API_IS_DRIVER},
	{"cuMemsetD16_v2", GP_API_HALVES | GP_API_IS_DRIVER},
	{"cuMemsetD32Async", GP_API_WORDS_ASYNC | GP_API_IS_DRIVER},
	{"cuMemsetD32_v2", GP_API_WORDS | GP_API_IS_DRIVER},
	{"cuMemsetD8Async", GP_API_BYTES_ASYNC | GP_API_IS_DRIVER},
	{"cuMemsetD8_v2", GP_API_BYTES | GP_API_IS_DRIVER},
	{"cuModuleGetFunction", GP_API_FUNCTION | GP_API_IS_DRIVER},
	{"cuStreamCreate", GP_API_PLAIN | GP_API_IS_DRIVER},
	{"cuStreamCreateWithPriority", GP_API_PLAIN | GP_API_IS_DRIVER},
	{"cuStreamDestroy_v2", GP_API_STREAM_1 | GP_API_IS_DRIVER},
	{"cuStreamQuery", GP_API_STREAM_1 | GP_API_IS_DRIVER},
	{"cuStreamSynchronize", GP_API_STREAM_1 | GP_API_IS_DRIVER},
	{"cuStreamWaitEvent", GP_API_STREAM_1 | GP_API_IS_DRIVER},
	{"cudaDeviceReset", GP_API_PLAIN},
	{"cudaDeviceSynchronize", GP_API_PLAIN},
	{"cudaEventQuery", GP_API_PLAIN},
	{"cudaEventRecord", GP_API_STREAM_2},
	{"cudaEventRecordWithFlags", GP_API_STREAM_2},
	{"cudaEventSynchronize", GP_API_PLAIN},
	{"cudaFree", GP_API_FREE},
	{"cudaFreeAsync", GP_API_FREE_ASYNC},
	{"cudaFreeHost", GP_API_FREE_HOST},
	{"cudaGraphExecDestroy", GP_API_PLAIN},
	{"cudaGraphInstantiate", GP_API_PLAIN},
	{"cudaGraphInstantiateWithFlags", GP_API_PLAIN},
	{"cudaGraphLaunch", GP_API_STREAM_2},
	{"cudaGraphUpload", GP_API_STREAM_2},
	{"cudaHostAlloc", GP_API_ALLOC_HOST},
	{"cudaLaunchCooperativeKernel", GP_API_LAUNCH},
	{"cudaLaunchHostFunc", GP_API_STREAM_1},
	{"cudaLaunchKernel", GP_API_LAUNCH},
	{"cudaLaunchKernelExC", GP_API_LAUNCH_EX},
	{"cudaMalloc", GP_API_ALLOC},
	{"cudaMallocAsync", GP_API_ALLOC_ASYNC},
	{"cudaMallocFromPoolAsync", GP_API_ALLOC_POOL},
	{"cudaMallocHost", GP_API_ALLOC_HOST},
	{"cudaMallocManaged", GP_API_ALLOC_MANAGED},
	{"cudaMallocPitch", GP_API_ALLOC_PITCH},
	{"cudaMemcpy", GP_API_COPY},
	{"cudaMemcpy2D", GP_API_COPY_2D},
	{"cudaMemcpy2DAsync", GP_API_COPY_2D_ASYNC},
	{"cudaMemcpy3D", GP_API_PLAIN},
	{"cudaMemcpy3DAsync", GP_API_STREAM_2},
	{"cudaMemcpy3DPeer", GP_API_PLAIN},
	{"cudaMemcpyAsync", GP_API_COPY_ASYNC},
	{"cudaMemcpyFromSymbol", GP_API_BYTES},
	{"cudaMemcpyPeer", GP_API_COPY_PEER},
	{"cudaMemcpyPeerAsync", GP_API_COPY_PEER_ASYNC},
	{"cudaMemcpyToSymbol", GP_API_BYTES},
	{"cudaMemset", GP_API_BYTES},
	{"cudaMemsetAsync", GP_API_BYTES_ASYNC},
	{"cudaStreamAddCallback", GP_API_STREAM_1},
	{"cudaStreamBeginCapture", GP_API_STREAM_1},
	{"cudaStreamCreate", GP_API_PLAIN},
	{"cudaStreamCreateWithFlags", GP_API_PLAIN},
	{"cudaStreamCreateWithPriority", GP_API_PLAIN},
	{"cudaStreamDestroy", GP_API_STREAM_1},
	{"cudaStreamEndCapture", GP_API_STREAM_1},
	{"cudaStreamQuery", GP_API_STREAM_1},
	{"cudaStreamSynchronize", GP_API_STREAM_1},
	{"cudaStreamWaitEvent", GP_API_STREAM_1},
	{"ncclAllGather", GP_API_NCCL_GATHER},
	{"ncclAllReduce", GP_API_NCCL_REDUCTION},
	{"ncclAlltoAll", GP_API_NCCL_GATHER},
	{"ncclBcast", GP_API_NCCL_PEER},
	{"ncclBroadcast", GP_API_NCCL_BROADCAST},
	{"ncclCommInitRank", GP_API_NCCL_INIT},
	{"ncclCommInitRankConfig", GP_API_NCCL_INIT},
	{"ncclGroupEnd", GP_API_NCCL_PLAIN},
	{"ncclGroupStart", GP_API_NCCL_PLAIN},
	{"ncclRecv", GP_API_NCCL_PEER},
	{"ncclReduce", GP_API_NCCL_REDUCE},
	{"ncclReduceScatter", GP_API_NCCL_REDUCTION},
	{"ncclSend", GP_API_NCCL_PEER},
};

static int compare(const void *key, const void *member)
{
	return strcmp(key, ((const struct function *)member)->name);
}

static size_t without_variant(const char *name)
{
	size_t bytes = strlen(name);

	if (bytes > 5 && (!strcmp(name + bytes - 5, "_ptsz") || !strcmp(name + bytes - 5, "_ptds")))
		return bytes - 5;
	return bytes;
}

bool cuda_api_find(const char *symbol, uint8_t *ret_layout)
{
	size_t bytes = without_variant(symbol);
	const struct function *f;
	char name[NAME_BYTES];

	if (bytes >= sizeof(name))
		return false;
	memcpy(name, symbol, bytes);
	name[bytes] = '\0';
	f = bsearch(name, functions, sizeof(functions) / sizeof(functions[0]), sizeof(functions[0]),
		    compare);
	if (f)
		*ret_layout = f->layout;
	return f;
}

bool cuda_api_is_memory(uint8_t layout)
{
	return (layout & 63) >= GP_API_MEMORY && (layout & 63) < GP_API_NCCL_CALL;
}

bool cuda_api_is_nccl(uint8_t layout)
{
	return (layout & 63) >= GP_API_NCCL_CALL && (layout & 63) < GP_API_FUNCTION;
}

bool cuda_api_needs_result(uint8_t layout)
{
	return cuda_api_is_memory(layout) || (layout & 63) >= GP_API_FUNCTION;
}
