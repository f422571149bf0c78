/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The part of wire.h that only gpuprof and the collector use. Include wire.h instead.
 */
#ifndef GP_BPF_WIRE_RING_H
#define GP_BPF_WIRE_RING_H

#include "wire.h"

/* ---- The collector's ring: one memfd, written by the traced process, read by gpuprof. ---- */

#define GP_RING_MAGIC 0x35676e6972707067ULL /* "gppring5" */
#define GP_RING_NAME  "gpuprof-ring"	    /* the memfd's name */

/* The longest event in the ring: a stack of GP_STACK_FRAMES. */
#define GP_RING_EVENT_BYTES 4352
/* Longer names are cut. CUTLASS has kernel names of thousands of bytes. */
#define GP_RING_NAME_BYTES 4095
/* All stack ids of a collector are below this. */
#define GP_RING_STACKS 131072

/* One of so many callbacks is timed. A prime, because programs call operators in cycles. */
#define GP_TIMED_EVERY 251

enum gp_feature {
	GP_FEATURE_OPS = 1,	 /* at::RecordFunction callbacks */
	GP_FEATURE_CUPTI = 2,	 /* GPU activity */
	GP_FEATURE_SHAPES = 64,	 /* inputs of ops; only with GP_FEATURE_OPS or _STEPS */
	GP_FEATURE_STACKS = 128, /* Python stacks of ops; only with GP_FEATURE_OPS or _STEPS */
	/* Where the inputs' tensors are stored; only with GP_FEATURE_SHAPES. */
	GP_FEATURE_TENSORS = 512,
	GP_FEATURE_STEPS = 4096,   /* annotations; only those, unless with GP_FEATURE_OPS */
	GP_FEATURE_MODULES = 8192, /* module calls; only with GP_FEATURE_OPS */
	/* The thread's CPU time at the end of step annotations, now and then. Without
	 * GP_FEATURE_OPS other annotations are left out, and step annotations have no length. Only
	 * with GP_FEATURE_STEPS. */
	GP_FEATURE_CPU_TIME = 16384,
	/* Which Python calls ops share; only with GP_FEATURE_OPS and _STACKS. */
	GP_FEATURE_CALLS = 262144,
	/* No annotations and no autograd nodes; only with GP_FEATURE_OPS. */
	GP_FEATURE_OPS_ALONE = 524288,
	/* Allocations and frees of CPU memory; only with GP_FEATURE_OPS. */
	GP_FEATURE_MEMORY = 1048576,
	/* CUPTI stays ours while GP_FEATURE_CUPTI is not wanted, with its records off. */
	GP_FEATURE_CUPTI_HELD = 2097152,
};

/* What InitializeInjection() of the collector returns. */
enum gp_collector_start {
	GP_START_FAILED = 0,
	GP_START_RUNS = 1,  /* it runs now, or already did */
	GP_START_LATER = 2, /* an earlier one is leaving: call again */
};

enum gp_collector_state {
	GP_COLLECTOR_NEW = 0,
	GP_COLLECTOR_READY = 1,	 /* `active` follows `wanted` */
	GP_COLLECTOR_INERT = 2,	 /* disarmed for good: may be removed */
	GP_COLLECTOR_FAILED = 3, /* see `message` */
};

/* Whether gpuprof holds the process's other threads, so that CUPTI can come or go. The collector
 * writes _NONE, _ASKED and _USED, gpuprof the others. */
enum gp_quiesce {
	GP_QUIESCE_NONE = 0,	/* the threads run */
	GP_QUIESCE_ASKED = 1,	/* the collector waits until they are held */
	GP_QUIESCE_ALL_OUT = 2, /* they are held until _NONE, none of them in a CUDA call */
	GP_QUIESCE_WAITING = 3, /* held too, but some in a CUDA call that waits for the GPU */
	GP_QUIESCE_REFUSED = 4, /* gpuprof could not hold them, or held them for too long */
	GP_QUIESCE_USED = 5,	/* held, and the collector's work must not be cut short */
};

/* How the collector gave CUPTI back. From GP_CUPTI_LEFT_CALLS on CUPTI was only unsubscribed, not
 * finalized, because: */
enum gp_cupti_end {
	GP_CUPTI_OURS = 0,	   /* not given back, or never armed */
	GP_CUPTI_DOWN = 1,	   /* finalized: CUDA calls are as fast as before */
	GP_CUPTI_LEFT_CALLS = 2,   /* threads could not be held outside of CUDA */
	GP_CUPTI_LEFT_SILENT = 3,  /* gpuprof was silent, so it held no threads */
	GP_CUPTI_LEFT_GRAPHS = 4,  /* CUDA graphs were used, or may have been */
	GP_CUPTI_LEFT_OLD = 5,	   /* it is older than CUDA 12.6 */
	GP_CUPTI_LEFT_REFUSED = 6, /* CUPTI or the driver refused */
};

/*
 * The first page of the memfd. `data_bytes` (a power of two) follow at offset 4096. Positions count
 * bytes and never wrap. An event lies at position & (data_bytes - 1), may wrap around the end, and
 * is complete when its slot header (struct gp_ring_slot) says so. There are many writers and one
 * reader. gpuprof trusts nothing in it.
 */
struct gp_ring_page {
	__u64 magic;
	__u32 wire_version;
	__u32 data_bytes;
	/* written by gpuprof */
	__u32 wanted;	    /* enum gp_feature bits */
	__u32 quit;	    /* 1: disarm for good */
	__u64 heartbeat_ns; /* gpuprof was alive then; older than 3 s: the collector disarms */
	__u64 process;	    /* the index to put into events */
	__u64 tail;	    /* everything before this position has been read */
	__u64 any_cupti;    /* 1: use even a dangerous CUPTI; set before `wanted` */
	__u64 pad0[8];
	/* written by the collector */
	__u64 head;	   /* next position to reserve */
	__u64 lost;	   /* events for which there was no room */
	__u32 state;	   /* enum gp_collector_state */
	__u32 active;	   /* enum gp_feature bits in force */
	__u32 failed;	   /* enum gp_feature bits that are wanted but not available */
	__u32 beat;	   /* counts up while the collector's thread runs */
	__u64 losses[40];  /* other losses since the ring was made, by enum gp_loss */
	char message[512]; /* the reasons for `failed`, for the user */
	__u64 timed_ns;	   /* the time that all timed callbacks took */
	__u64 timed_nr;	   /* their number: one of GP_TIMED_EVERY on each thread */
	/* written by gpuprof before it wants GP_FEATURE_STACKS or _MODULES */
	struct gp_python python;
	/* written by the collector: CPU time of its own thread, as of the last turn */
	__u64 thread_cpu_ns;
	/* written by the collector: the address of its GP_STACK_TOPS entries while
	 * GP_FEATURE_STACKS is in force, else 0 */
	__u64 stack_tops;
	__u32 quiesce;	 /* enum gp_quiesce: written by both, each only from what the other wrote */
	__u32 cupti_end; /* enum gp_cupti_end: written by the collector */
};

/* The header of each event in the ring. `bytes`, a multiple of 8, counts header and event. */
struct gp_ring_slot {
	__u32 bytes;
	__u32 ready; /* low 32 bits of the slot's position, plus one, once complete */
};

#endif /* GP_BPF_WIRE_RING_H */
