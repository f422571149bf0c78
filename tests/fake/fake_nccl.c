/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The stand-in for libnccl.so.2: collectives with their real names and arguments, each a kernel
 * that the runtime launches.
 */
#include "fake/fake_runtime.h"

struct fake_nccl_id {
	char bytes[128];
};

FAKE_GPU_PUBLIC int ncclCommInitRank(void **ret_comm, int ranks, struct fake_nccl_id id, int rank);
FAKE_GPU_PUBLIC int ncclGroupStart(void);
FAKE_GPU_PUBLIC int ncclGroupEnd(void);
FAKE_GPU_PUBLIC int ncclAllReduce(const void *from, void *to, size_t count, int type, int op,
				  void *comm, void *stream);
FAKE_GPU_PUBLIC int ncclReduce(const void *from, void *to, size_t count, int type, int op, int root,
			       void *comm, void *stream);
FAKE_GPU_PUBLIC int ncclAllGather(const void *from, void *to, size_t count, int type, void *comm,
				  void *stream);
FAKE_GPU_PUBLIC int ncclSend(const void *from, size_t count, int type, int peer, void *comm,
			     void *stream);

/* As the real one has it, to be printed. */
__attribute__((used)) static const char version[] = "NCCL version 2.17.1+cuda12.0";

static int launch(const char *name, void *stream)
{
	return cudaLaunchKernel(name, (struct dim3){16, 1, 1}, (struct dim3){512, 1, 1}, NULL, 0,
				stream);
}

/* Not a constant: the call must stay one. */
int ncclCommInitRank(void **ret_comm, int ranks, struct fake_nccl_id id, int rank)
{
	static int next;

	*ret_comm =
		(void *)(uintptr_t)(0x1000 + 0x10 * __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED));
	return rank < ranks ? 0 : 4;
}

int ncclGroupStart(void)
{
	return cudaGetDevice(&(int){0});
}

int ncclGroupEnd(void)
{
	return cudaGetDevice(&(int){0});
}

int ncclAllReduce(const void *from, void *to, size_t count, int type, int op, void *comm,
		  void *stream)
{
	int result = launch("ncclDevKernel_AllReduce_Sum_f32_RING_LL", stream);

	return result;
}

int ncclReduce(const void *from, void *to, size_t count, int type, int op, int root, void *comm,
	       void *stream)
{
	int result = launch("ncclDevKernel_Reduce_Sum_f32_RING_LL", stream);

	return result;
}

int ncclAllGather(const void *from, void *to, size_t count, int type, void *comm, void *stream)
{
	int result = launch("ncclDevKernel_AllGather_RING_LL", stream);

	return result;
}

int ncclSend(const void *from, size_t count, int type, int peer, void *comm, void *stream)
{
	int result = launch("ncclDevKernel_SendRecv", stream);

	return result;
}
