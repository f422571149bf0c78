/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The part of wire.h that describes functions of the CUDA API and NCCL to their probes, in the
 * cookie: shared by probe/ and cuda.bpf.c.
 */
#ifndef GP_BPF_CUDA_LAYOUT_H
#define GP_BPF_CUDA_LAYOUT_H

/*
 * Where a function's arguments lie: the top bits of a cookie's scope. For their meaning see
 * bpf/cuda.bpf.c.
 */
enum gp_api_layout {
	GP_API_PLAIN = 0,
	GP_API_STREAM_1 = 1,
	GP_API_STREAM_2 = 2,
	GP_API_LAUNCH = 3,
	GP_API_LAUNCH_EX = 4,
	GP_API_LAUNCH_DRIVER = 5,
	GP_API_LAUNCH_DRIVER_EX = 6,
	GP_API_COPY = 7,
	GP_API_COPY_ASYNC = 8,
	GP_API_COPY_2D = 9,
	GP_API_COPY_2D_ASYNC = 10,
	GP_API_COPY_PEER = 11,
	GP_API_COPY_PEER_ASYNC = 12,
	GP_API_BYTES = 13,
	GP_API_BYTES_ASYNC = 14,
	GP_API_HALVES = 15,
	GP_API_HALVES_ASYNC = 16,
	GP_API_WORDS = 17,
	GP_API_WORDS_ASYNC = 18,
	/* From here on: calls that allocate or free memory. */
	GP_API_MEMORY = 19,
	GP_API_ALLOC = 19,
	GP_API_ALLOC_MANAGED = 20,
	GP_API_ALLOC_HOST = 21,
	GP_API_ALLOC_PITCH = 22,
	GP_API_ALLOC_ASYNC = 23,
	GP_API_ALLOC_POOL = 24,
	GP_API_ALLOC_PHYSICAL = 25,
	GP_API_FREE = 26,
	GP_API_FREE_HOST = 27,
	GP_API_FREE_ASYNC = 28,
	GP_API_FREE_PHYSICAL = 29,
	/* From here on: calls of NCCL. */
	GP_API_NCCL_CALL = 30,
	GP_API_NCCL_PLAIN = 30,
	GP_API_NCCL_REDUCTION =
		31,		 /* buffer, buffer, count, type, operation, communicator, stream */
	GP_API_NCCL_REDUCE = 32, /* the same with a root before the communicator */
	GP_API_NCCL_BROADCAST = 33, /* buffer, buffer, count, type, root, communicator, stream */
	GP_API_NCCL_PEER = 34,	    /* buffer, count, type, peer or root, communicator, stream */
	GP_API_NCCL_GATHER = 35,    /* buffer, buffer, count, type, communicator, stream */
	GP_API_NCCL_INIT = 36,	    /* where the communicator goes, ranks, (id), rank */
	/* From here on: calls that return handles of kernels. */
	GP_API_FUNCTION = 37,	 /* where the handle goes, module, name */
	GP_API_FUNCTION_OF = 38, /* where the handle goes, another handle of the same kernel */
	GP_API_LAYOUT_NR = 39,
	/* Flags beside the layout. */
	GP_API_IS_DRIVER = 64,
	GP_API_HAS_EXIT = 128, /* its exit is probed */
};

#endif /* GP_BPF_CUDA_LAYOUT_H */
