/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The part of wire.h that is between gpuprof and the collector alone. Include wire.h.
 */
#ifndef GP_BPF_WIRE_RING_H
#define GP_BPF_WIRE_RING_H

#include "wire.h"

/* ---- The collector's ring: one memfd, written by the target, read by gpuprof. ---- */

#define GP_RING_MAGIC 0x35676e6972707067ULL /* "gppring5" */
#define GP_RING_NAME  "gpuprof-ring"	    /* the memfd's name */

/* No event in the ring is longer: room for a stack of GP_STACK_FRAMES. */
#define GP_RING_EVENT_BYTES 4352
/* Longer names are cut: kernels of CUTLASS have thousands of bytes. */
#define GP_RING_NAME_BYTES 4095
/* Ids of a collector's stacks are below this. */
#define GP_RING_STACKS 131072

/* Of callbacks, one of so many is timed: a prime, because what calls them comes in turns. */
#define GP_TIMED_EVERY 251

enum gp_feature {
	GP_FEATURE_OPS = 1,	 /* at::RecordFunction callbacks */
	GP_FEATURE_CUPTI = 2,	 /* GPU activity */
	GP_FEATURE_SHAPES = 64,	 /* inputs of ops; together with GP_FEATURE_OPS or _STEPS */
	GP_FEATURE_STACKS = 128, /* Python stacks of ops; likewise */
	/* Memory of the inputs; only together with GP_FEATURE_SHAPES. */
	GP_FEATURE_TENSORS = 512,
	GP_FEATURE_STEPS = 4096,   /* annotations alone, unless GP_FEATURE_OPS is wanted too */
	GP_FEATURE_MODULES = 8192, /* calls of modules; together with GP_FEATURE_OPS */
	/* CPU time of the thread where an annotation ends that tells steps, now and then; and
	 * without GP_FEATURE_OPS no annotations but those, which begin where they end. Only
	 * together with GP_FEATURE_STEPS. */
	GP_FEATURE_CPU_TIME = 16384,
	/* Which Python calls ops share; together with GP_FEATURE_OPS and _STACKS. */
	GP_FEATURE_CALLS = 262144,
	/* With GP_FEATURE_OPS: neither annotations nor autograd nodes. */
	GP_FEATURE_OPS_ALONE = 524288,
	/* Allocations and frees of CPU memory; together with GP_FEATURE_OPS. */
	GP_FEATURE_MEMORY = 1048576,
	/* CUPTI stays taken while GP_FEATURE_CUPTI is not wanted, with its records off. */
	GP_FEATURE_CUPTI_HELD = 2097152,
};

/* What the collector's door returns. */
enum gp_collector_start {
	GP_START_FAILED = 0,
	GP_START_RUNS = 1,  /* by now, or already */
	GP_START_LATER = 2, /* an earlier one is leaving: come again */
};

enum gp_collector_state {
	GP_COLLECTOR_NEW = 0,
	GP_COLLECTOR_READY = 1,	 /* `active` follows `wanted` */
	GP_COLLECTOR_INERT = 2,	 /* disarmed for good: may be taken out */
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

/* What became of CUPTI when the collector had no more use for it. From GP_CUPTI_LEFT_CALLS on it
 * was let go of, and not taken down, because: */
enum gp_cupti_end {
	GP_CUPTI_OURS = 0,	   /* it has not been given back, or was never taken */
	GP_CUPTI_DOWN = 1,	   /* it was taken down: calls of CUDA are as quick as before */
	GP_CUPTI_LEFT_CALLS = 2,   /* threads could not be held outside of CUDA, */
	GP_CUPTI_LEFT_SILENT = 3,  /* gpuprof was silent, and held none, */
	GP_CUPTI_LEFT_GRAPHS = 4,  /* CUDA graphs have come, or may have come, */
	GP_CUPTI_LEFT_OLD = 5,	   /* it is of a CUDA before 12.6, */
	GP_CUPTI_LEFT_REFUSED = 6, /* CUPTI, or the driver, would not */
};

/*
 * First page of the memfd. `data_bytes` (a power of two) follow at offset 4096. Positions count
 * bytes for ever and never wrap; an event lies at position & (data_bytes - 1), may wrap around the
 * end, and is complete when its slot header (struct gp_ring_slot) says so. Many producers, one
 * reader. Nothing in it is trusted by gpuprof.
 */
struct gp_ring_page {
	__u64 magic;
	__u32 wire_version;
	__u32 data_bytes;
	/* written by gpuprof */
	__u32 wanted;	    /* enum gp_feature bits */
	__u32 quit;	    /* 1: disarm for good */
	__u64 heartbeat_ns; /* gpuprof was alive; older than 3 s: the collector disarms itself */
	__u64 process;	    /* index to put into events */
	__u64 tail;	    /* everything before it has been read */
	__u64 any_cupti;    /* 1: also one that is known to endanger the process; before `wanted` */
	__u64 pad0[8];
	/* written by the collector */
	__u64 head;	   /* next position to reserve */
	__u64 lost;	   /* events that found no room */
	__u32 state;	   /* enum gp_collector_state */
	__u32 active;	   /* enum gp_feature bits in force */
	__u32 failed;	   /* enum gp_feature bits that were wanted and cannot be had */
	__u32 beat;	   /* counts up while the collector's thread runs */
	__u64 losses[40];  /* other than ring full, by enum gp_loss, since the ring was made */
	char message[512]; /* why `failed`, for people */
	__u64 timed_ns;	   /* time that callbacks took which the collector has timed */
	__u64 timed_nr;	   /* and how many those were: one of GP_TIMED_EVERY on each thread */
	/* written by gpuprof before it wants GP_FEATURE_STACKS or _MODULES */
	struct gp_python python;
	/* written by the collector: CPU time of its own thread, as of its last turn */
	__u64 thread_cpu_ns;
	/* written by the collector: where GP_STACK_TOPS places lie in the process, while
	 * GP_FEATURE_STACKS is in force; else 0 */
	__u64 stack_tops;
	__u32 quiesce;	 /* enum gp_quiesce: written by both, each only from what the other wrote */
	__u32 cupti_end; /* enum gp_cupti_end: written by the collector */
};

/* Before each event in the ring. `bytes` counts this slot and its event, a multiple of 8. */
struct gp_ring_slot {
	__u32 bytes;
	__u32 ready; /* low 32 bits of the slot's position, plus one, once complete */
};

#endif /* GP_BPF_WIRE_RING_H */
