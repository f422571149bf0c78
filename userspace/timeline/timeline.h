/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What happened, as arrays: the pure computation between a recording and every output. Indexes are
 * array positions; TL_NONE is "none". Times are CLOCK_MONOTONIC nanoseconds. Nothing here does I/O,
 * and nothing changes after timeline__new().
 */
#ifndef GP_TIMELINE_TIMELINE_H
#define GP_TIMELINE_TIMELINE_H

#include "base/reason.h"
#include "base/vec.h"
#include "recording/recording.h"
#include "timeline/gpu.h"

#include <stdbool.h>
#include <stdint.h>

#define TL_NONE UINT32_MAX

struct tl_process {
	int32_t pid; /* below 0: the recording does not say which */
	/* The pid, but different in each process: those of several machines can be the same. */
	int64_t row_pid;
	int32_t rank;
	const char *comm;
	const char *cmdline;
};

struct tl_thread {
	uint32_t process;
	uint32_t tid;
	const char *comm;
};

/*
 * One op instance. Ops are sorted by (thread, start ascending, end descending): a parent stands
 * before its children, and the children of one op follow in order of start. Parent and child are on
 * one thread; a child lies within its parent.
 */
struct tl_op {
	uint64_t start_ns;
	uint64_t end_ns;
	uint64_t self_ns; /* duration less the direct children's and that of API calls in it */
	uint64_t instance;
	const char *name; /* interned */
	const char *overload;
	uint32_t thread;
	uint32_t parent;
	uint32_t depth; /* 0: no parent */
	uint32_t scope; /* enum gp_op_scope */
	uint32_t stack_id;
	uint32_t flags;	 /* enum gp_op_flags */
	uint32_t inputs; /* of timeline.inputs, TL_NONE: not recorded */
	/* Same name as its parent and its only child: torch.profiler removes such an op from its
	 * table (formats.md 1.1, 7); times and memory of the parent stay what they are. Still in
	 * the trace. */
	bool collapsed;
	/* torch.profiler leaves this name out of its table (formats.md 1.1, 1). Still in the trace.
	 */
	bool unlisted;
	uint32_t thread_number; /* PyTorch's own number of the thread, 0: not known */
	int64_t sequence_nr;
	uint64_t forward_thread;
	/* The op whose gradient it computes, if it is a backward node or lies in one; TL_NONE: none
	 * or not known. It may be of another thread and began earlier. */
	uint32_t forward;
	int64_t cpu_bytes; /* allocated less freed while it was open, its children's included */
	int64_t self_cpu_bytes;
	int64_t cuda_bytes;
	int64_t self_cuda_bytes;
	uint64_t cuda_ns; /* durations of its GPU work added up, its children's included */
	uint64_t self_cuda_ns;
};

/* Beside enum gp_device_type: memory that CUDA itself gave, to PyTorch's allocator and others. */
enum tl_device_type {
	TL_DEVICE_CUDA_CALLS = 256,    /* cudaMalloc and its like, on any GPU */
	TL_DEVICE_CUDA_HOST = 257,     /* pinned memory of the host */
	TL_DEVICE_CUDA_PHYSICAL = 258, /* cuMemCreate: what is mapped piece by piece */
};

/* One allocation or free, in order of time. */
struct tl_memory {
	uint64_t time_ns;
	uint64_t address;
	int64_t bytes; /* + allocated, - freed; a free of unknown size is not here but counted */
	int64_t total_bytes; /* of its device in its process after it, since the capture began */
	uint64_t allocated_bytes; /* the allocator's own totals, 0: not told */
	uint64_t reserved_bytes;
	uint32_t thread;
	uint32_t op;	     /* innermost op open, or TL_NONE */
	uint32_t partner;    /* the free of this allocation or the other way, or TL_NONE */
	int16_t device_type; /* enum gp_device_type */
	int16_t device_index;
	uint32_t stack_id;
};

/* Whether torch.profiler would know of it. */
static inline bool tl_memory_is_pytorch(const struct tl_memory *m)
{
	return m->device_type < TL_DEVICE_CUDA_CALLS;
}

/* One list of inputs. */
struct tl_inputs {
	const void *data; /* in the form of gp_ev_inputs, checked */
	size_t bytes;
	const char *shapes; /* as torch.profiler prints them; interned */
	bool valueless;	    /* values of scalars were not told */
};

struct tl_loss {
	const char *name;
	uint64_t count;
};

struct timeline {
	uint64_t start_ns, end_ns;   /* the capture's window */
	uint64_t realtime_offset_ns; /* CLOCK_REALTIME less CLOCK_MONOTONIC */
	VEC(struct tl_process) processes;
	VEC(struct tl_thread) threads;
	VEC(struct tl_op) ops;
	VEC(struct tl_memory) memory;
	/* Requests that were refused: bytes asked for, no address, no partner. By time. */
	VEC(struct tl_memory) out_of_memory;
	VEC(struct tl_inputs) inputs;
	struct tl_gpus gpu;
	VEC(struct tl_loss) losses;	   /* the recording's, then what the join found */
	const struct recording *recording; /* metadata; outlives the timeline */
	struct timeline_private *private;
};

/* Builds it from a recording, which must outlive it. 0 or -errno with a reason. */
int timeline__new(struct recording *rec, struct reason *why, struct timeline **ret_timeline);
void timeline__free(struct timeline *t);

/* An autograd node that says whose gradient it computes. */
static inline bool tl_op_is_backward(const struct tl_op *op)
{
	return op->sequence_nr >= 0 && op->forward_thread && !(op->flags & GP_OP_ASYNC);
}

/* A stack that is shown for something. */
struct tl_stack {
	uint32_t id;	 /* 0: none */
	bool is_forward; /* of the forward op of what happened in its backward */
	uint32_t flags;	 /* enum gp_stack_flags */
	size_t nr;
	const uint32_t *frames; /* innermost first, the recording's */
};

/* The stack that tells where something comes from whose own stack is `own_stack_id` (0: none) and
 * that is, or happened in, the op (TL_NONE: none): of a backward op its forward op's where that is
 * known, as torch.profiler does it, else its own, else its op's. */
struct tl_stack timeline__stack(const struct timeline *t, uint32_t own_stack_id, uint32_t op);

/* For each op the one in whose row of the table its own time and memory count: itself, what stands
 * for it, or TL_NONE. `heirs` has room for all ops. */
void timeline__heirs(const struct timeline *t, uint32_t *heirs);

#endif /* GP_TIMELINE_TIMELINE_H */
