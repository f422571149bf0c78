/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What happened, as arrays: the pure computation between a recording and every output. Indexes are
 * array positions; TL_NONE is "none". Times are CLOCK_MONOTONIC nanoseconds. Nothing here does I/O,
 * and nothing changes after timeline__new().
 */
#ifndef GP_TIMELINE_MODEL_TIMELINE_H
#define GP_TIMELINE_MODEL_TIMELINE_H

#include "base/reason.h"
#include "base/vec.h"
#include "recording/recording.h"
#include "timeline/model/gpu.h"

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

/* Some of the processes; all zero: all of them. */
struct tl_part {
	bool one_rank; /* those of `rank` alone */
	int32_t rank;
	int64_t pid; /* the one of this row_pid; 0: whichever */
};

static inline bool tl_part_has(const struct tl_part *part, const struct tl_process *p)
{
	return (!part->one_rank || p->rank == part->rank) &&
	       (!part->pid || p->row_pid == part->pid);
}

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
	 * table; times and memory of the parent stay what they are. Still in
	 * the trace. */
	bool collapsed;
	/* torch.profiler leaves this name out of its table. Still in the trace.
	 */
	bool unlisted;
	bool step; /* a step that was found, see struct tl_step: not an event of the recording */
	uint32_t thread_number; /* PyTorch's own number of the thread, 0: not known */
	/* The op whose gradient it computes, if it is a backward node or lies in one; TL_NONE: none
	 * or not known. It may be of another thread and began earlier. */
	uint32_t forward;
	int64_t sequence_nr;
	uint64_t forward_thread;
	uint32_t module_call; /* the innermost it began in, TL_NONE: none or not known */
	uint32_t python_call; /* likewise */
};

/* What is added up over an op, where a recording has any of it: see timeline__op_sums(). */
struct tl_op_sums {
	int64_t cpu_bytes; /* allocated less freed while it was open, its children's included */
	int64_t self_cpu_bytes;
	int64_t cuda_bytes;
	int64_t self_cuda_bytes;
	uint64_t cuda_ns; /* durations of its GPU work added up, its children's included */
	uint64_t self_cuda_ns;
	uint64_t flops;	    /* as torch.profiler counts them, of this op alone */
	uint64_t all_flops; /* as we count them (timeline/build/flops.h), its children's included */
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

/* In the order of torch.profiler's files. */
enum tl_category {
	TL_PARAMETER = 0,
	TL_OPTIMIZER_STATE = 1,
	TL_INPUT = 2,
	TL_TEMPORARY = 3,
	TL_ACTIVATION = 4,
	TL_GRADIENT = 5,
	TL_AUTOGRAD_DETAIL = 6,
	TL_UNKNOWN = 7,
	TL_CATEGORIES = 8,
};

/* torch.profiler's numbers. */
enum tl_change { TL_PREEXISTING = 1, TL_CREATE = 2, TL_WRITE = 3, TL_DESTROY = 4 };

/* Something happened to memory: it is there, or becomes another category. */
struct tl_category_change {
	uint64_t time_ns; /* 0: before the capture */
	int64_t bytes;	  /* not negative */
	uint32_t process;
	uint8_t change; /* enum tl_change */
	uint8_t from;	/* enum tl_category; TL_PREEXISTING and TL_CREATE: its first */
	uint8_t to;	/* of TL_WRITE: what it is from now on; else as `from` */
	uint8_t device; /* GP_TENSOR_CPU and on */
};

/* Whether torch.profiler would know of it. */
static inline bool tl_memory_is_pytorch(const struct tl_memory *m)
{
	return m->device_type < TL_DEVICE_CUDA_CALLS;
}

/* An nn.Module of a process. */
struct tl_module {
	uint32_t process;
	uint64_t object; /* its address */
	const char *type;
	const char *name;	   /* "nn.Module: Linear_0", as torch.profiler calls it; interned */
	const char *backward_name; /* the same with a mark; interned */
	uint32_t number;	   /* of its type, in the order of first calls */
};

/*
 * One call of a module: from the begin of the first op in it to the end of the last one. Sorted by
 * thread and begin, a call before those in it; they nest.
 */
struct tl_module_call {
	uint64_t start_ns, end_ns;
	uint64_t first, last; /* instances of the ops in it */
	uint32_t thread;
	uint32_t module;
	uint32_t parent; /* the call around it, TL_NONE: none */
	uint32_t depth;	 /* 0: none */
};

/*
 * One call of a Python function, as far as operators tell: from the begin of the first one in it to
 * the end of the last one, or of the garbage collection in which that was; where only calls of
 * modules were recorded, of one of those. Those of a thread are in order of begin, a call before
 * those in it; they nest, also with ops.
 */
struct tl_python_call {
	uint64_t start_ns, end_ns;
	uint32_t thread;
	uint32_t parent;      /* the call around it, TL_NONE: none */
	uint32_t frame;	      /* the recording's, at its first op; TL_NONE: not known */
	uint32_t module_call; /* that it is, of timeline.module_calls, TL_NONE: of no module */
};

/* One list of inputs. */
struct tl_inputs {
	const void *data; /* in the form of gp_ev_inputs, checked */
	size_t bytes;
	const char *shapes; /* as torch.profiler prints them; interned */
	bool valueless;	    /* values of scalars were not told */
};

/* What told where steps begin and end; the first of these that a process has. */
enum tl_steps_by {
	TL_STEPS_PROFILER = 0,	 /* ProfilerStep#N, which the program itself makes */
	TL_STEPS_OPTIMIZER = 1,	 /* from the end of one Optimizer.step to that of the next */
	TL_STEPS_DATALOADER = 2, /* from one DataLoader's __next__ to the next */
	TL_STEPS_SEQUENCE = 3,	 /* a cycle of operators that no other one called */
};

/* One whole step. What was cut off at the ends of the capture is none. */
struct tl_step {
	uint64_t start_ns, end_ns;
	uint64_t number; /* as in ProfilerStep#N */
	uint32_t op;	 /* that stands for it in timeline.ops, TL_NONE: none does */
};

/* The steps of one process: steps[first] to steps[first + nr - 1], in order of time, on one thread.
 */
struct tl_step_series {
	uint32_t process;
	uint32_t thread;
	enum tl_steps_by by;
	const char *marker; /* name of the annotation that told; NULL: a cycle */
	uint32_t cycle_nr;  /* operators in the cycle */
	uint32_t first, nr;
};

/* An operator, or an autograd node, in whose function a frame of a sampled stack is. */
struct tl_stack_op {
	const char *name; /* interned */
	const char *overload;
	uint32_t scope; /* enum gp_op_scope */
};

/* A stack that samples have. */
struct tl_sampled_stack {
	uint32_t id;	/* the recording's; 0: of samples without a stack */
	uint32_t flags; /* enum gp_stack_flags */
	uint32_t nr;
	const uint32_t *frames; /* innermost first, the recording's */
	/* Of timeline.stack_ops, innermost first, each name once. */
	uint32_t ops_at, ops_nr;
};

/* What a thread was found doing. The times that samples stand for are estimates. */
struct tl_sample {
	uint64_t start_ns, end_ns; /* of the first and of the last one of a wait; else the same */
	uint64_t weight_ns;	   /* all of them */
	uint32_t nr;
	uint32_t thread;
	uint32_t stack; /* of timeline.sampled_stacks */
	uint32_t syscall;
	uint32_t flags; /* enum gp_sample_flags */
};

/* Someone switched collection off. */
struct tl_pause {
	uint64_t start_ns, end_ns;
	bool cpu, gpu; /* what was off */
};

/* A window of exact collection within a budget: of whole steps, or by time. */
struct tl_window {
	uint64_t start_ns, end_ns;
	uint64_t cost_ns;   /* CPU time that it took */
	uint64_t inside_ns; /* by so much it would have been shorter unwatched */
	double weight; /* it stands for so many like it: those since the one before, and itself */
	uint64_t all_steps_nr; /* that there have been at its end, 0: not known */
	uint32_t steps_nr;
	bool by_steps;
};

/* Python collected garbage. */
struct tl_python_gc {
	uint64_t start_ns, end_ns;
	int64_t collected; /* objects; below 0: not known */
	uint32_t thread;
	int32_t generation; /* the oldest that was looked at; below 0: not known */
	bool crossing;	    /* an op or call neither lies in it nor holds it, nor is apart */
};

/* Why a flight recorder wrote what it held. */
struct tl_trigger {
	struct gp_ev_trigger reported;
	uint32_t thread; /* TL_NONE: of none */
};

/* Where a thread was in Python when a hang was noticed. */
struct tl_thread_stack {
	uint64_t time_ns;
	uint32_t thread;
	uint32_t stack_id;
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
	VEC(struct tl_op_sums) op_sums; /* of each op, in their order; empty: all are zero */
	VEC(struct tl_memory) memory;
	/* Requests that were refused: bytes asked for, no address, no partner. By time. */
	VEC(struct tl_memory) out_of_memory;
	VEC(struct tl_inputs) inputs;
	uint64_t all_flops;	     /* of all ops */
	VEC(struct tl_pause) pauses; /* by start */
	uint64_t paused_ns;	     /* of the window, with nothing collected of the CPU */
	/* Of a capture within a budget, by time: what lies in none of them was left out, and counts
	 * as paused. */
	VEC(struct tl_window) windows;
	bool windows_overlap;  /* of several captures: they do not stand for one whole */
	uint64_t all_steps_nr; /* in windows and between them, 0: not known */
	uint64_t unwanted_ns;  /* for so long no window was wanted */
	/* Of samples within a budget windows are of GPU work alone. What began in one stands for so
	 * many times itself, times the window's weight; 0: all is known. */
	double gpu_stands_for;
	bool gpu_in_windows; /* it is so */
	bool gpu_estimated;  /* and some stands for more than itself */
	bool gpu_unseen;     /* there was no such window, though there was something to be seen */
	bool gpu_partial; /* it is of such windows of several recordings: of all nothing is known */
	VEC(struct tl_trigger) triggers; /* in the order in which they were set off */
	VEC(struct tl_thread_stack) thread_stacks;
	VEC(struct tl_python_gc) python_gcs; /* by thread, then time: one at a time of each */
	VEC(struct tl_module) modules;	     /* in the order of first calls */
	VEC(struct tl_module_call) module_calls;
	VEC(struct tl_python_call) python_calls;
	VEC(struct tl_step) steps;
	VEC(struct tl_step_series) step_series; /* at most one a process */
	/* By time, then kind of change. Empty without has_categories: no op told its tensors. */
	VEC(struct tl_category_change) categories;
	bool has_categories;
	bool sampled;		       /* the recording is of samples */
	VEC(struct tl_sample) samples; /* by thread, then time */
	VEC(struct tl_sampled_stack) sampled_stacks;
	VEC(struct tl_stack_op) stack_ops;
	struct tl_gpus gpu;
	VEC(struct tl_loss) losses;	   /* the recording's, then what the join found */
	const struct recording *recording; /* metadata; outlives the timeline */
	struct timeline_private *private;
};

/* Builds it from a recording, which must outlive it. 0 or -errno with a reason. */
int timeline__new(struct recording *rec, struct reason *why, struct timeline **ret_timeline);

/* The same, with an op ProfilerStep#N for each step, as torch.profiler has one where it was given a
 * schedule. timeline__new() does so where the recording was made by steps. */
int timeline__new_steps(struct recording *rec, struct reason *why, struct timeline **ret_timeline);

void timeline__free(struct timeline *t);

/* Whose sequence number and forward thread are shown for the op of this index: its own, but for the
 * autograd engine's evaluate_function those of the node that begins right after, in it, as
 * torch.profiler's set_autograd_evaluate() copies them. */
const struct tl_op *timeline__sequenced_op(const struct timeline *t, size_t op);

/* The sums of the op of this index. Never NULL. */
const struct tl_op_sums *timeline__op_sums(const struct timeline *t, size_t op);

/* An autograd node that says whose gradient it computes. */
static inline bool tl_op_is_backward(const struct tl_op *op)
{
	return op->sequence_nr >= 0 && op->forward_thread && !(op->flags & GP_OP_ASYNC);
}

/* Whether frames are missing. `flags` are enum gp_stack_flags. */
static inline bool tl_stack_is_cut(uint32_t flags)
{
	return flags & (GP_STACK_TRUNCATED | GP_STACK_INCOMPLETE);
}

/* How often a second each CPU was sampled, in the mean; 0: it was not, or it is not known. */
double timeline__sample_hz(const struct timeline *t);

/* What calls of Python functions begin and end with, in words. Never NULL. */
static inline const char *tl_call_bounds(const struct timeline *t)
{
	return t->python_gcs.nr ? "first and last operator, or a garbage collection with it"
				: "first and last operator";
}

/* What a sampled thread was doing, in a word: "running", or what it waited for. Never NULL. */
const char *timeline__activity(const struct timeline *t, const struct tl_sample *s);

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

/* The same where times are added up: of an annotation without the frames of PyTorch that begin it,
 * in which it does not stay. */
struct tl_stack timeline__stack_inside(const struct timeline *t, uint32_t own_stack_id,
				       uint32_t op);

/* For how many times itself GPU work stands. */
double timeline__gpu_stands_for(const struct timeline *t, const struct tl_gpu *work);

/* When GPU work was asked for, as far as that is known, else when it began: CUPTI tells of what was
 * asked for while its records were on. */
uint64_t timeline__asked_ns(const struct timeline *t, const struct tl_gpu *work);

/* Nanoseconds in which windows could have been: all but those that `unwanted_ns` counts. */
uint64_t timeline__wanted_ns(const struct timeline *t);

/* The window in which this time lies, or TL_NONE; and whether all of this does, in one or in
 * several that follow one another at once. */
uint32_t timeline__window_at(const struct timeline *t, uint64_t time_ns);
bool timeline__in_windows(const struct timeline *t, uint64_t from_ns, uint64_t to_ns);

/* For each op the one in whose row of the table its own time and memory count: itself, what stands
 * for it, or TL_NONE. `heirs` has room for all ops. */
void timeline__heirs(const struct timeline *t, uint32_t *heirs);

#endif /* GP_TIMELINE_MODEL_TIMELINE_H */
