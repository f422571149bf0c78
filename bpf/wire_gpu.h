/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The part of wire.h for GPU activity and the calls that request it. Include wire.h.
 */
#ifndef GP_BPF_WIRE_GPU_H
#define GP_BPF_WIRE_GPU_H

#include "wire.h"

/*
 * One call of the CUDA API. CUPTI's has the correlation id; a uprobe's has the op instance and the
 * arguments. timeline/ joins the two.
 */
enum gp_api_flags {
	GP_API_CUPTI = 1,
	GP_API_DRIVER = 2,
	GP_API_RESULT_UNKNOWN = 4, /* `result` is unknown */
	GP_API_NCCL = 8,	   /* timeline/ only: a gp_ev_collective */
	GP_API_OVERHEAD = 16,	   /* timeline/ only: a gp_ev_overhead */
};

struct gp_ev_api {
	struct gp_ev_head head; /* time_ns: end; 0 if only the entry is probed */
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

/* A gp_ev_api by uprobe with more arguments: the same kind, distinguished by its length. */
struct gp_ev_api_call {
	struct gp_ev_api api;
	__u64 function;	      /* launches: the kernel's host function; for the driver, its handle */
	__u32 kernel_name_id; /* its name; 0: unknown */
	__u32 copy_kind;      /* cudaMemcpyKind; GP_COPY_KIND_NONE: not a copy */
};

#define GP_COPY_KIND_NONE 0xffffffffU

#define GP_FUNCTION_NAME_BYTES 512

/* The function behind a kernel's handle, by a probe. `name` is empty if it is too long, and if `of`
 * is set. */
struct gp_ev_function {
	struct gp_ev_head head;
	__u64 handle;
	__u64 of; /* another handle of the same kernel; 0: see `name` */
	char name[GP_FUNCTION_NAME_BYTES];
};

/* The most CUDA API calls that can be open on one thread. */
#define GP_API_DEPTH 8

enum gp_cuda_memory {
	GP_CUDA_DEVICE = 0,
	GP_CUDA_MANAGED = 1,
	GP_CUDA_HOST = 2,     /* pinned */
	GP_CUDA_PHYSICAL = 3, /* cuMemCreate: `address` is the handle */
};

/* CUDA allocated or freed memory (flags: GP_MEMORY_FREE; then bytes is 0). Emitted once, for the
 * outermost call. */
struct gp_ev_cuda_memory {
	struct gp_ev_head head;
	__u64 instance; /* the op that was open; 0: none */
	__u64 address;
	__u64 bytes;
	__u32 name_id; /* name of the call */
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

/* A gp_ev_sync with the event record that was waited for: the same kind, distinguished by its
 * length. */
struct gp_ev_sync_event {
	struct gp_ev_sync sync;
	__u64 record_id; /* of a gp_ev_cuda_event; 0: CUPTI does not report it */
};

enum gp_cuda_event_flags {
	/* time_ns is when the GPU reached it, else when gpuprof learned of it. */
	GP_CUDA_EVENT_TIMED = 1,
};

struct gp_ev_cuda_event {
	struct gp_ev_head head;
	__u64 record_id;      /* CUPTI's id of this record; 0: none */
	__u32 correlation_id; /* of the call that recorded it */
	__u32 context;
	__u32 stream;
	__u32 event;  /* id within its context; the same when recorded again */
	__u32 device; /* ~0: unknown */
	__u32 reserved;
};

/* One call of NCCL. An argument that the call lacks is 0, or -1 where 0 is a value. */
struct gp_ev_collective {
	struct gp_ev_head head; /* time_ns: end; 0 if only the entry is probed */
	__u64 start_ns;
	__u64 instance;
	__u64 count;	    /* elements */
	__u64 communicator; /* the handle */
	__u64 stream;	    /* the handle */
	__u32 name_id;
	__s32 datatype; /* ncclDataType_t */
	__s32 op;	/* ncclRedOp_t; -1: none */
	__s32 peer;	/* the peer or the root */
	__s32 ranks;	/* size of a new communicator */
	__s32 rank;
};

/* Time that CUPTI or the driver took. head.tid: the thread that it occupied; 0: unknown. */
struct gp_ev_overhead {
	struct gp_ev_head head;
	__u64 start_ns;
	__u32 what; /* CUpti_ActivityOverheadKind */
	__u32 reserved;
};

/* Numbers are 0 where the driver does not report them. */
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
	__u32 shared_per_block; /* in bytes, like the next three */
	__u32 shared_per_block_optin;
	__u32 shared_per_sm;
	__u32 shared_reserved; /* by the driver, per block */
	__u32 sms;
	__u32 blocks_per_sm;
	char name[64];	 /* not trusted, perhaps not terminated */
	__u32 clock_khz; /* the highest SM clock; the rest is missing in older recordings */
	__u32 reserved;
	/* the process's own version, 0: unknown; older recordings end here */
	__u32 driver_version;  /* 13000: CUDA 13.0 */
	__u32 runtime_version; /* likewise; also 0 if it is linked statically */
	__u32 cupti_version;
	__u32 reserved2;
};

/*
 * A pair of clock readings. A time of CUPTI's clock is converted along the line between the
 * readings around it. Its error is at most the larger of the two widths plus the change of (time_ns
 * - gpu_ns) between the two. If that change exceeds 1/1000 of the time between them plus the
 * widths, the clock was set; the error is then that 1/1000, and a time that can only belong to one
 * of the readings is converted from that one.
 */
struct gp_ev_clock {
	struct gp_ev_head head; /* time_ns: the middle of the bracket */
	__u64 gpu_ns;		/* CUPTI's clock */
	__u64 width_ns;		/* width of the bracket */
};

#endif /* GP_BPF_WIRE_GPU_H */
