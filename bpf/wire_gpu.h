/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The part of wire.h that tells what GPUs did and what was asked of them. Include wire.h.
 */
#ifndef GP_BPF_WIRE_GPU_H
#define GP_BPF_WIRE_GPU_H

#include "wire.h"

/*
 * One call of the CUDA API. By CUPTI it carries the correlation id, by uprobe the op instance and
 * the arguments; timeline/ joins the two.
 */
enum gp_api_flags {
	GP_API_CUPTI = 1,
	GP_API_DRIVER = 2,
	GP_API_RESULT_UNKNOWN = 4, /* `result` was not seen */
	GP_API_NCCL = 8,	   /* timeline/ only: a gp_ev_collective */
	GP_API_OVERHEAD = 16,	   /* timeline/ only: a gp_ev_overhead */
};

struct gp_ev_api {
	struct gp_ev_head head; /* time_ns: end; 0 with a probe on the entry only */
	__u64 start_ns;
	__u64 instance;
	__u32 name_id;
	__u32 cbid;
	__u32 correlation_id;
	__u32 stack_id;
	__u64 stream;
	__u64 bytes;
	__u32 grid[3];
	__u32 block[3];
	__u32 shared_bytes;
	__u32 result;
};

/* A gp_ev_api by uprobe, with what else it was called with: the same kind, told apart by its
 * length. */
struct gp_ev_api_call {
	struct gp_ev_api api;
	__u64 function; /* of launches: the kernel's host function, of the driver's the handle */
	__u32 kernel_name_id; /* its name, 0: not known */
	__u32 copy_kind;      /* cudaMemcpyKind, GP_COPY_KIND_NONE: the call has none */
};

#define GP_COPY_KIND_NONE 0xffffffffU

#define GP_FUNCTION_NAME_BYTES 512

/* By a probe. A longer name is not told: `name` is empty, as it is where `of` tells. */
struct gp_ev_function {
	struct gp_ev_head head;
	__u64 handle;
	__u64 of; /* the other handle, 0: the name is told */
	char name[GP_FUNCTION_NAME_BYTES];
};

/* Calls of the CUDA API open on one thread at a time. */
#define GP_API_DEPTH 8

enum gp_cuda_memory {
	GP_CUDA_DEVICE = 0,
	GP_CUDA_MANAGED = 1,
	GP_CUDA_HOST = 2,     /* pinned */
	GP_CUDA_PHYSICAL = 3, /* cuMemCreate: `address` is the handle */
};

/* CUDA has given memory, or taken it back (flags: GP_MEMORY_FREE; bytes is 0 then). Told once, by
 * the outermost call. */
struct gp_ev_cuda_memory {
	struct gp_ev_head head;
	__u64 instance; /* the op that was open, 0: none */
	__u64 address;
	__u64 bytes;
	__u32 name_id; /* of the call */
	__u32 what;    /* enum gp_cuda_memory */
	__u32 stack_id;
	__u32 reserved;
};

struct gp_ev_kernel {
	struct gp_ev_head head; /* time_ns: end, converted to CLOCK_MONOTONIC */
	__u64 start_ns;
	__u64 queued_ns;
	__u32 correlation_id;
	__u32 name_id;
	__u32 device;
	__u32 context;
	__u32 stream;
	__u32 registers;
	__u32 grid[3];
	__u32 block[3];
	__s32 static_shared_bytes;
	__s32 dynamic_shared_bytes;
	__u64 graph_node;
	__u32 graph;
	__u32 reserved;
};

struct gp_ev_gpu_memory {
	struct gp_ev_head head;
	__u64 start_ns;
	__u64 bytes;
	__u32 correlation_id;
	__u32 device;
	__u32 context;
	__u32 stream;
	__u8 is_set;	/* 1: memset, 0: copy */
	__u8 copy_kind; /* CUpti_ActivityMemcpyKind */
	__u8 src_kind;	/* CUpti_ActivityMemoryKind; memset: the destination's */
	__u8 dst_kind;
	__u32 graph;
	__u64 graph_node;
	__u32 peer_device; /* copies between devices: the destination's, else ~0 */
	__u32 reserved;
};

struct gp_ev_sync {
	struct gp_ev_head head;
	__u64 start_ns;
	__u32 correlation_id;
	__u32 what; /* CUpti_ActivitySynchronizationType */
	__u32 context;
	__u32 stream; /* ~0: none */
	__u32 event;  /* 0: none */
	__u32 reserved;
};

/* A gp_ev_sync with the record of the event that is waited for: the same kind, told apart by its
 * length. */
struct gp_ev_sync_event {
	struct gp_ev_sync sync;
	__u64 record_id; /* of a gp_ev_cuda_event; 0: CUPTI does not tell */
};

enum gp_cuda_event_flags {
	/* time_ns is when the GPU came to it, else when gpuprof heard of it. */
	GP_CUDA_EVENT_TIMED = 1,
};

struct gp_ev_cuda_event {
	struct gp_ev_head head;
	__u64 record_id;      /* CUPTI's number of this very record, 0: none */
	__u32 correlation_id; /* of the call that recorded it */
	__u32 context;
	__u32 stream;
	__u32 event;  /* of its context; recorded again it is the same */
	__u32 device; /* ~0: not told */
	__u32 reserved;
};

/* One call of NCCL; what it has no such argument for is 0, and -1 where that is a value. */
struct gp_ev_collective {
	struct gp_ev_head head; /* time_ns: end; 0 with a probe on the entry only */
	__u64 start_ns;
	__u64 instance;
	__u64 count;	    /* elements */
	__u64 communicator; /* the handle */
	__u64 stream;	    /* the handle */
	__u32 name_id;
	__s32 datatype; /* ncclDataType_t */
	__s32 op;	/* ncclRedOp_t */
	__s32 peer;	/* or the root */
	__s32 ranks;	/* of a new communicator */
	__s32 rank;
};

/* head.tid: the thread that it kept busy, 0: not told. */
struct gp_ev_overhead {
	struct gp_ev_head head;
	__u64 start_ns;
	__u32 what; /* CUpti_ActivityOverheadKind */
	__u32 reserved;
};

/* Numbers are 0 where the driver does not tell them. */
struct gp_ev_device {
	struct gp_ev_head head;
	__u64 memory_bytes;
	__u32 device;
	__u32 major, minor; /* compute capability */
	__u32 threads_per_block;
	__u32 threads_per_sm;
	__u32 registers_per_block;
	__u32 registers_per_sm;
	__u32 warp_threads;
	__u32 shared_per_block; /* bytes, as the next three */
	__u32 shared_per_block_optin;
	__u32 shared_per_sm;
	__u32 shared_reserved; /* of each block, by the driver */
	__u32 sms;
	__u32 blocks_per_sm;
	char name[64];	 /* not trusted, perhaps not terminated */
	__u32 clock_khz; /* the highest of its SMs; older recordings have nothing from here on */
	__u32 reserved;
	/* of the process, as each tells itself, 0: not known; older recordings end here */
	__u32 driver_version;  /* 13000: of CUDA 13.0 */
	__u32 runtime_version; /* likewise; 0 too where it is no library of its own name */
	__u32 cupti_version;
	__u32 reserved2;
};

/*
 * Times of CUPTI's clock are converted along the line between the two readings around them. Such a
 * time is wrong by at most the larger of the two widths, plus how far (time_ns - gpu_ns) moved
 * between the two; where it moved by more than 1/1000 of the time between them, and the widths, the
 * clock was set, and it is that 1/1000 instead: a time that can only belong to one of the two
 * readings is converted from that one.
 */
struct gp_ev_clock {
	struct gp_ev_head head; /* time_ns: middle of the bracket */
	__u64 gpu_ns;		/* CUPTI's clock */
	__u64 width_ns;		/* of the bracket */
};

#endif /* GP_BPF_WIRE_GPU_H */
