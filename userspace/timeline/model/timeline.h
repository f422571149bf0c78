/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A recording's events as arrays, joined: pure computation between a recording and every output.
 * Indexes are array positions; TL_NONE means none. Times are CLOCK_MONOTONIC nanoseconds. Nothing
 * here does I/O, and nothing changes after timeline__new().
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
	int32_t pid; /* below 0: not known */
	/* The pid, made unique: processes of several machines may share one. */
	int64_t row_pid;
	int32_t rank;
	const char *comm;
	const char *cmdline;
};

/* A selection of processes; all zero selects all. */
struct tl_part {
	bool one_rank; /* only those of `rank` */
	int32_t rank;
	int64_t pid; /* only that of this row_pid; 0: any */
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
	uint64_t self_ns; /* duration without that of direct children and API calls in it */
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
	/* The only child of a parent of the same name: torch.profiler drops it from its table, and
	 * the parent's times and memory stay as they are. It stays in the trace. */
	bool collapsed;
	/* torch.profiler drops this name from its table. It stays in the trace. */
	bool unlisted;
	bool step; /* stands for a step that was found, see struct tl_step: not an event of the
		      recording */
	uint32_t thread_number; /* PyTorch's own number of the thread, 0: not known */
	/* For a backward node, or an op in one: the op whose gradient it computes, TL_NONE: not
	 * known. That may be of another thread, and began earlier. */
	uint32_t forward;
	int64_t sequence_nr;
	uint64_t forward_thread;
	uint32_t module_call; /* the innermost one it began in, TL_NONE: none or not known */
	uint32_t python_call; /* likewise */
};

/* Sums over an op, where the recording has any: see timeline__op_sums(). */
struct tl_op_sums {
	int64_t cpu_bytes; /* allocated minus freed while it was open, children included */
	int64_t self_cpu_bytes;
	int64_t cuda_bytes;
	int64_t self_cuda_bytes;
	uint64_t cuda_ns; /* summed durations of its GPU work, children included */
	uint64_t self_cuda_ns;
	uint64_t flops;	    /* as torch.profiler counts, of this op alone */
	uint64_t all_flops; /* as gpuprof counts (timeline/build/flops.h), children included */
};

/* More device types: memory that CUDA itself gave, to PyTorch's allocator and others. */
enum tl_device_type {
	TL_DEVICE_CUDA_CALLS = 256,    /* cudaMalloc and similar, on any GPU */
	TL_DEVICE_CUDA_HOST = 257,     /* pinned memory of the host */
	TL_DEVICE_CUDA_PHYSICAL = 258, /* cuMemCreate: mapped piece by piece */
};

/* One allocation or free, in order of time. */
struct tl_memory {
	uint64_t time_ns;
	uint64_t address;
	int64_t bytes; /* + allocated, - freed; a free of unknown size is not here but counted */
	int64_t total_bytes;	  /* of its device and process after it, since the capture began */
	uint64_t allocated_bytes; /* the allocator's own totals, 0: not known */
	uint64_t reserved_bytes;
	uint32_t thread;
	uint32_t op;	     /* innermost op open, or TL_NONE */
	uint32_t partner;    /* the free of this allocation, or the reverse; or TL_NONE */
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

/* A change of memory: it appears, or gets another category. */
struct tl_category_change {
	uint64_t time_ns; /* 0: before the capture */
	int64_t bytes;	  /* not negative */
	uint32_t process;
	uint8_t change; /* enum tl_change */
	uint8_t from;	/* enum tl_category; of TL_PREEXISTING and TL_CREATE the first one */
	uint8_t to;	/* of TL_WRITE its category from now on; else as `from` */
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
	const char *backward_name; /* the same, marked as backward; interned */
	uint32_t number;	   /* within its type, by first call */
};

/*
 * One call of a module, from the begin of its first op to the end of its last. Sorted by thread and
 * begin, outer calls first; they nest.
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
 * One call of a Python function, as far as operators show it: from the begin of its first op to the
 * end of its last, or of the garbage collection around that one. Where only calls of modules were
 * recorded, one of those. By begin within a thread, outer calls first; they nest, also with ops.
 */
struct tl_python_call {
	uint64_t start_ns, end_ns;
	uint32_t thread;
	uint32_t parent;      /* the call around it, TL_NONE: none */
	uint32_t frame;	      /* the recording's, at its first op; TL_NONE: not known */
	uint32_t module_call; /* the same call in timeline.module_calls, TL_NONE: not a module's */
};

/* One list of inputs. */
struct tl_inputs {
	const void *data; /* in the form of gp_ev_inputs, checked */
	size_t bytes;
	const char *shapes; /* as torch.profiler prints them; interned */
	bool valueless;	    /* values of scalars were not recorded */
};

/* What marks the steps of a process: the first of these that it has. */
enum tl_steps_by {
	TL_STEPS_PROFILER = 0,	 /* ProfilerStep#N, from the program itself */
	TL_STEPS_OPTIMIZER = 1,	 /* from the end of one Optimizer.step to that of the next */
	TL_STEPS_DATALOADER = 2, /* from one DataLoader's __next__ to the next */
	TL_STEPS_SEQUENCE = 3,	 /* a cycle of top-level operators */
};

/* One whole step. A step that the capture cut off is none. */
struct tl_step {
	uint64_t start_ns, end_ns;
	uint64_t number; /* as in ProfilerStep#N */
	uint32_t op;	 /* its op in timeline.ops, TL_NONE: it has none */
};

/* The steps of one process: steps[first] to steps[first + nr - 1], by time, on one thread. */
struct tl_step_series {
	uint32_t process;
	uint32_t thread;
	enum tl_steps_by by;
	const char *marker; /* name of the annotation that marks them; NULL: a cycle */
	uint32_t cycle_nr;  /* operators in the cycle */
	uint32_t first, nr;
};

/* An operator or autograd node whose function has a frame on a sampled stack. */
struct tl_stack_op {
	const char *name; /* interned */
	const char *overload;
	uint32_t scope; /* enum gp_op_scope */
};

/* A stack of samples. */
struct tl_sampled_stack {
	uint32_t id;	/* the recording's; 0: of samples without a stack */
	uint32_t flags; /* enum gp_stack_flags */
	uint32_t nr;
	const uint32_t *frames; /* innermost first, the recording's */
	/* Of timeline.stack_ops, innermost first, each name once. */
	uint32_t ops_at, ops_nr;
};

/* What a thread was doing when it was sampled. The times that samples stand for are estimates. */
struct tl_sample {
	uint64_t start_ns, end_ns; /* of a wait's first and last sample; else equal */
	uint64_t weight_ns;	   /* of all of them together */
	uint32_t nr;
	uint32_t thread;
	uint32_t stack; /* of timeline.sampled_stacks */
	uint32_t syscall;
	uint32_t flags; /* enum gp_sample_flags */
};

/* A time for which someone switched collection off. */
struct tl_pause {
	uint64_t start_ns, end_ns;
	bool cpu, gpu; /* what was off */
};

/* A window of exact collection within a budget: of whole steps, or by time. */
struct tl_window {
	uint64_t start_ns, end_ns;
	uint64_t cost_ns;   /* CPU time that it took */
	uint64_t inside_ns; /* how much shorter it would have been without being observed */
	double weight; /* how many windows it stands for: itself, and the time or steps since the
			  one before */
	uint64_t all_steps_nr; /* steps until its end, 0: not known */
	uint32_t steps_nr;
	bool by_steps;
};

/* Python collected garbage. */
struct tl_python_gc {
	uint64_t start_ns, end_ns;
	int64_t collected; /* objects; below 0: not known */
	uint32_t thread;
	int32_t generation; /* the oldest one collected; below 0: not known */
	bool crossing;	    /* overlaps an op or call without nesting */
};

/* A trigger of the flight recorder. */
struct tl_trigger {
	struct gp_ev_trigger reported;
	uint32_t thread; /* TL_NONE: none */
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
	uint64_t realtime_offset_ns; /* CLOCK_REALTIME minus CLOCK_MONOTONIC */
	VEC(struct tl_process) processes;
	VEC(struct tl_thread) threads;
	VEC(struct tl_op) ops;
	VEC(struct tl_op_sums) op_sums; /* by op; empty: all are zero */
	VEC(struct tl_memory) memory;
	/* Refused requests, by time: the bytes asked for, no address, no partner. */
	VEC(struct tl_memory) out_of_memory;
	VEC(struct tl_inputs) inputs;
	uint64_t all_flops;	     /* of all ops */
	VEC(struct tl_pause) pauses; /* by start */
	uint64_t paused_ns; /* of the window: time in which nothing of the CPU was collected */
	/* Windows of a capture within a budget, by time. Events in none of them were dropped, and
	 * the time between them counts as paused. */
	VEC(struct tl_window) windows;
	bool windows_overlap;  /* from several captures: they do not represent one whole */
	uint64_t all_steps_nr; /* in windows and between them, 0: not known */
	uint64_t unwanted_ns;  /* time in which no window was wanted */
	/* With sampling within a budget, windows cover GPU work only. Work that began in one stands
	 * for this many times itself, times the window's weight; 0: everything was recorded. */
	double gpu_stands_for;
	bool gpu_in_windows; /* windows cover GPU work only */
	bool gpu_estimated;  /* and some of it stands for more than itself */
	bool gpu_unseen;     /* no window had a length, though there was GPU work to see */
	bool gpu_partial; /* merged from recordings with such windows: nothing is known of the whole
			   */
	VEC(struct tl_trigger) triggers; /* in the order in which they fired */
	VEC(struct tl_thread_stack) thread_stacks;
	VEC(struct tl_python_gc) python_gcs; /* by thread, then time: one at a time per thread */
	VEC(struct tl_module) modules;	     /* in the order of first calls */
	VEC(struct tl_module_call) module_calls;
	VEC(struct tl_python_call) python_calls;
	VEC(struct tl_step) steps;
	VEC(struct tl_step_series) step_series; /* at most one per process */
	/* By time, then kind of change. Empty without has_categories: no op reported its
	 * tensors. */
	VEC(struct tl_category_change) categories;
	bool has_categories;
	bool sampled;		       /* a recording of samples */
	VEC(struct tl_sample) samples; /* by thread, then time */
	VEC(struct tl_sampled_stack) sampled_stacks;
	VEC(struct tl_stack_op) stack_ops;
	struct tl_gpus gpu;
	VEC(struct tl_loss) losses;	   /* the recording's, then what the join found */
	const struct recording *recording; /* metadata; outlives the timeline */
	struct timeline_private *private;
};

/* Builds a timeline from a recording, which must outlive it. 0 or -errno with a reason. */
int timeline__new(struct recording *rec, struct reason *why, struct timeline **ret_timeline);

/* The same, with an op ProfilerStep#N for each step, as torch.profiler makes when it has a
 * schedule. timeline__new() does so for recordings by steps. */
int timeline__new_steps(struct recording *rec, struct reason *why, struct timeline **ret_timeline);

void timeline__free(struct timeline *t);

/* The op whose sequence number and forward thread are shown for the op of this index. That is the
 * op itself, except for the autograd engine's evaluate_function: there it is the node that begins
 * right after and within it, as in torch.profiler's set_autograd_evaluate(). */
const struct tl_op *timeline__sequenced_op(const struct timeline *t, size_t op);

/* The sums of the op of this index. Never NULL. */
const struct tl_op_sums *timeline__op_sums(const struct timeline *t, size_t op);

/* Whether the op is an autograd node that names the op whose gradient it computes. */
static inline bool tl_op_is_backward(const struct tl_op *op)
{
	return op->sequence_nr >= 0 && op->forward_thread && !(op->flags & GP_OP_ASYNC);
}

/* Whether frames are missing. `flags` are enum gp_stack_flags. */
static inline bool tl_stack_is_cut(uint32_t flags)
{
	return flags & (GP_STACK_TRUNCATED | GP_STACK_INCOMPLETE);
}

/* The mean rate per second at which each CPU was sampled; 0: not at all, or not known. */
double timeline__sample_hz(const struct timeline *t);

/* What calls of Python functions begin and end with, in words. Never NULL. */
static inline const char *tl_call_bounds(const struct timeline *t)
{
	return t->python_gcs.nr ? "first and last operator, or a garbage collection with it"
				: "first and last operator";
}

/* What a sampled thread was doing, in a word: "running", or what it waited for. Never NULL. */
const char *timeline__activity(const struct timeline *t, const struct tl_sample *s);

/* A stack as it is shown. */
struct tl_stack {
	uint32_t id;	 /* 0: none */
	bool is_forward; /* of the forward op, shown for something in its backward */
	uint32_t flags;	 /* enum gp_stack_flags */
	size_t nr;
	const uint32_t *frames; /* innermost first, the recording's */
};

/* The stack to show for something that has the stack `own_stack_id` (0: none) and is, or happened
 * in, the op (TL_NONE: none). For a backward op that is its forward op's, where known, as in
 * torch.profiler; else its own, else its op's. */
struct tl_stack timeline__stack(const struct timeline *t, uint32_t own_stack_id, uint32_t op);

/* The same for adding times up: an annotation's stack without the PyTorch frames that begin it,
 * which it does not stay in. */
struct tl_stack timeline__stack_inside(const struct timeline *t, uint32_t own_stack_id,
				       uint32_t op);

/* How many times itself GPU work stands for. */
double timeline__gpu_stands_for(const struct timeline *t, const struct tl_gpu *work);

/* When GPU work was requested, or, if that is not known, when it began. CUPTI reports the work that
 * was requested while its records were on. */
uint64_t timeline__asked_ns(const struct timeline *t, const struct tl_gpu *work);

/* The time in which windows were wanted: all but `unwanted_ns`. */
uint64_t timeline__wanted_ns(const struct timeline *t);

/* The window that holds this time, or TL_NONE; and whether this span lies in one window or in
 * several that follow each other at once. */
uint32_t timeline__window_at(const struct timeline *t, uint64_t time_ns);
bool timeline__in_windows(const struct timeline *t, uint64_t from_ns, uint64_t to_ns);

/* For each op the one whose row of the table gets its own time and memory: itself, the op that
 * replaces it, or TL_NONE. `heirs` has room for all ops. */
void timeline__heirs(const struct timeline *t, uint32_t *heirs);

#endif /* GP_TIMELINE_MODEL_TIMELINE_H */
