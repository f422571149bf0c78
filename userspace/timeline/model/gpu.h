/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What GPUs did, and which calls asked for it, as arrays of the timeline. All are empty if the
 * recording has no GPU event.
 */
#ifndef GP_TIMELINE_MODEL_GPU_H
#define GP_TIMELINE_MODEL_GPU_H

#include "base/vec.h"
#include "wire.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * One call of the CUDA runtime or driver: uprobe and CUPTI together make one entry. Sorted by
 * (thread, start ascending, end descending). Calls of a thread nest, also with its ops: a call lies
 * in the innermost op that is open at its middle, and holds no op. A driver call by which the
 * runtime does its work is part of the runtime's call.
 */
struct tl_api {
	uint64_t start_ns;
	uint64_t end_ns;
	uint64_t self_ns;	 /* duration less that of the calls in it */
	const char *name;	 /* without CUPTI's version suffix */
	uint32_t thread;	 /* of timeline.threads */
	uint32_t op;		 /* innermost op, annotations included, or TL_NONE */
	uint32_t parent;	 /* the call it lies in, or TL_NONE */
	uint32_t cbid;		 /* CUPTI's, 0: not known */
	uint32_t correlation_id; /* CUPTI's, 0: CUPTI did not see it */
	uint32_t stack_id;
	uint32_t flags;	     /* enum gp_api_flags */
	uint32_t gpu_nr;     /* entries of tl_gpus.work that name it */
	uint32_t args;	     /* of tl_gpus.args, TL_NONE: only CUPTI has seen it */
	uint32_t collective; /* of tl_gpus.collectives, TL_NONE: no call of NCCL */
};

/* What a call of NCCL was made with; see struct gp_ev_collective. */
struct tl_collective {
	uint64_t count, communicator, stream;
	int32_t datatype, op, peer;
	int32_t ranks; /* of the communicator, 0: made before the capture, not known */
};

/* The arguments of an API call that a uprobe saw; 0 where it has no such argument. */
struct tl_api_args {
	const char *kernel; /* demangled, NULL: not known; interned */
	uint64_t stream;    /* the handle, which is not CUPTI's number of it */
	uint64_t bytes;
	uint32_t grid[3];
	uint32_t block[3];
	uint32_t shared_bytes;
};

enum tl_gpu_kind { TL_GPU_KERNEL = 0, TL_GPU_COPY = 1, TL_GPU_SET = 2, TL_GPU_SYNC = 3 };

/* CUpti_ActivitySynchronizationType. */
enum tl_sync {
	TL_SYNC_EVENT = 1,
	TL_SYNC_STREAM_WAIT = 2,
	TL_SYNC_STREAM = 3,
	TL_SYNC_CONTEXT = 4
};

/* One kernel, copy, memset or synchronisation. Sorted by start. */
struct tl_gpu {
	enum tl_gpu_kind kind;
	uint64_t start_ns;
	uint64_t end_ns;
	/* Start and end for drawing only: never before the launch, whose clock differs a little. */
	uint64_t shown_start_ns;
	uint64_t shown_end_ns;
	const char *name; /* as torch.profiler prints it, demangled; interned */
	uint32_t process; /* of timeline.processes */
	uint32_t device;  /* TL_NONE: not known, of a synchronisation only */
	uint32_t context;
	uint32_t stream; /* TL_NONE: none, of a synchronisation only */
	uint32_t correlation_id;
	uint32_t api; /* the call that asked for it, or TL_NONE */
	uint32_t op;  /* the op of that call, or TL_NONE */
	/* Row within a process's stream in a drawing: work with the same lane does not overlap.
	 * TL_NONE: not drawn. */
	uint32_t lane;
	uint32_t graph;
	uint64_t graph_node;
	union {
		struct {
			uint64_t queued_ns;
			uint32_t grid[3];
			uint32_t block[3];
			uint32_t registers;
			int64_t shared_bytes; /* static and dynamic */
		} kernel;
		struct {
			uint64_t bytes;
			uint32_t peer_device; /* TL_NONE: none */
		} memory;
		struct {
			uint32_t what;	    /* enum tl_sync */
			uint32_t event;	    /* 0: none */
			uint64_t record_id; /* CUPTI's of the event's record, 0: not told */
			/* The call that recorded the event, 0: not known; and on which stream,
			 * TL_NONE: not known. */
			uint32_t record_correlation_id;
			uint32_t record_stream;
		} sync;
	};
};

/* When a GPU reached the record of a CUDA event, where that was measured. */
struct tl_cuda_event {
	uint64_t time_ns;
	uint32_t process;
	uint32_t device, context, stream;
	uint32_t event;
	uint32_t correlation_id;
	uint32_t op; /* the op of the call that recorded it, or TL_NONE */
};

/* A GPU as the driver of a process describes it; 0 where it does not say. */
struct tl_device {
	uint32_t process;
	const char *name; /* interned */
	struct gp_ev_device reported;
};

/* Time that CUPTI or the driver took for itself. */
struct tl_overhead {
	uint64_t start_ns, end_ns;
	const char *name; /* as Kineto prints it */
	uint32_t process;
	uint32_t tid; /* 0: not known */
};

/* The work of one stream, or of all streams of a device. Synchronisations are not work. */
struct tl_gpu_use {
	uint32_t process;
	uint32_t device;
	uint32_t stream; /* TL_NONE: the whole device */
	uint64_t nr;	 /* kernels, copies and memsets */
	uint64_t first_ns, last_ns;
	uint64_t sum_ns;  /* of their durations */
	uint64_t busy_ns; /* when at least one of them ran: the union */
	uint64_t idle_ns; /* between them, while GPUs were observed */
	/* From the begin of the call to that of the work, where the call is known and earlier. */
	uint64_t queue_nr, queue_sum_ns, queue_max_ns;
	/* The estimate for the whole: see timeline__gpu_stands_for(). */
	double whole_nr, whole_kernels_nr, whole_busy_ns;
};

struct tl_gpus {
	bool any; /* the recording has GPU or API events */
	VEC(struct tl_api) api;
	VEC(struct tl_api_args) args;
	VEC(struct tl_collective) collectives;
	VEC(struct tl_gpu) work;
	VEC(struct tl_cuda_event) events; /* by time */
	VEC(struct tl_device) described;
	VEC(struct tl_overhead) overhead;
	VEC(struct tl_gpu_use) streams; /* in order of first use */
	VEC(struct tl_gpu_use) devices;
	uint64_t launches_unseen_nr; /* kernels that only probes saw, while other work has GPU times
				      */
	uint64_t clock_readings;     /* pairs of readings: CUPTI's clock and ours */
	/* Converted times are wrong by this at most (struct gp_ev_clock). */
	uint64_t clock_error_ns;
	uint64_t clock_steps; /* how often CUPTI's clock was set */
};

/* The description of a device, NULL if there is none. */
const struct tl_device *tl_gpus__device(const struct tl_gpus *gpu, uint32_t process,
					uint32_t device);

/* Makes correlation ids unique across processes: CUPTI counts within each. Those of the first
 * process stay CUPTI's own. 0 stays 0. */
static inline uint64_t tl_call_id(uint32_t process, uint32_t correlation_id)
{
	return correlation_id ? (uint64_t)process << 32 | correlation_id : 0;
}

/* Whether the work kept the GPU busy. */
static inline bool tl_gpu_is_work(const struct tl_gpu *g)
{
	return g->kind != TL_GPU_SYNC;
}

/* Whether a CUDA event was waited for, by the host or by a stream. */
static inline bool tl_gpu_waits_for_event(const struct tl_gpu *g)
{
	return g->kind == TL_GPU_SYNC && g->sync.event &&
	       (g->sync.what == TL_SYNC_EVENT || g->sync.what == TL_SYNC_STREAM_WAIT);
}

#endif /* GP_TIMELINE_MODEL_GPU_H */
