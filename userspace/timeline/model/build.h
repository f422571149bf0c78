/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * State and steps of building a timeline; timeline.c has the order of the steps. Private to this
 * room. Every step accepts whatever a damaged or forged recording holds: it repairs or drops what
 * cannot be true, and counts it.
 */
#ifndef GP_TIMELINE_MODEL_BUILD_H
#define GP_TIMELINE_MODEL_BUILD_H

#include "base/hash.h"
#include "base/intern.h"
#include "base/memory.h"
#include "timeline/model/sort.h"
#include "timeline/model/timeline.h"

/* What the join finds wrong. Each counter ends up in timeline.losses. */
enum tl_counter {
	TL_TIME_INVALID = 0,	   /* events that end before they begin, and times of no clock */
	TL_INSTANCE_DUPLICATE = 1, /* ops with the instance of another op */
	TL_PARENT_MISSING = 2,	   /* ops whose parent was lost */
	TL_NESTING_REPAIRED = 3,   /* ops cut so that they lie within their parent */
	TL_PROCESS_UNKNOWN = 4,	   /* processes that the recording does not name */
	TL_MEMORY_OP_MISSING = 5,  /* memory events whose op was lost */
	TL_MEMORY_INVALID = 6,	   /* memory events with an impossible size */
	TL_FREE_LOST = 7,	   /* allocations at an address whose free was not seen */
	TL_FREE_UNKNOWN = 8,	   /* added to the recording's own counter of this name */
	/* The rest is reported only if the recording has GPU events. */
	TL_API_TIME_INVALID = 9, /* API calls that end before they begin, or of no real clock */
	TL_API_OP_MISSING = 10,	 /* API calls whose op was lost */
	TL_API_UNJOINED =
		11, /* calls that only one of uprobe and CUPTI saw, while both were watching */
	TL_GPU_TIME_INVALID = 12, /* GPU work that ends before it begins, or never began */
	TL_GPU_UNMATCHED = 13,	  /* GPU work whose API call is missing */
	TL_LAUNCH_UNMATCHED = 14, /* kernel launches whose kernel is missing */
	TL_GPU_EARLY = 15, /* GPU work that seems to begin before its call, by the clocks' error */
	TL_GPU_NOT_DRAWN = 16,	     /* overlapping GPU work that found no row in the trace */
	TL_SYNC_DEVICE_UNKNOWN = 17, /* synchronisations of a context with no work of one device */
	TL_COUNTER_NR = 18,
};

/* Later times and larger sizes are refused; the sum of two fits 64 bits. */
#define TL_TIME_END_NS (1ULL << 62)
#define TL_SIZE_END    (1LL << 50)

/* How many open ops a search visits at most: more than any honest capture has. */
#define TL_SEARCH_DEPTH (4 * GP_OP_DEPTH)

struct raw_memory {
	uint64_t time_ns, instance, address;
	int64_t bytes;
	uint64_t allocated_bytes, reserved_bytes;
	uint32_t thread;
	uint32_t stack_id;
	int16_t device_type, device_index;
	uint8_t flags;
	bool before; /* before the window: it only tells the size of what is freed later */
	uint32_t op; /* after build_memory(): of timeline.ops, or TL_NONE */
};

/* What one op was called with: a range of build.tensors.words. */
struct raw_tensors {
	uint64_t instance;
	uint32_t at, nr;
};

/* One call of a module, before it is placed. */
struct raw_module_call {
	struct tl_module_call call; /* without module and parent */
	uint64_t object;
	const char *type; /* interned */
};

/* The inputs that one overload may write: see gp_ev_schemas. */
struct raw_schema {
	const char *letters; /* interned */
	uint32_t next;	     /* the next overload of the name, or TL_NONE */
};

struct tl_name {
	const char *name;
	const char *overload;
	bool unlisted;
};

struct raw_api {
	struct tl_api api;
	const char *base; /* the name without any suffix; interned */
	uint64_t instance;
	bool has_end;
	bool joined; /* seen by uprobe and CUPTI */
	bool gone;   /* became part of another */
};

/* One record of a CUDA event. */
struct raw_cuda_event {
	uint64_t record_id; /* 0: none */
	uint64_t time_ns;   /* 0: not measured */
	uint32_t process, context, event;
	uint32_t correlation_id, stream;
	uint32_t device; /* TL_NONE: not known */
};

/* An API call under the key by which GPU work names it. */
struct api_key {
	uint64_t key; /* process and correlation id */
	uint64_t start_ns;
	uint32_t api;
};

/* The room between ops of a thread in which a call can lie. */
struct op_gap {
	uint32_t op; /* innermost open op, or TL_NONE */
	uint64_t low_ns, high_ns;
};

/* The last reading of a process's clocks. */
struct clock_reading {
	uint64_t time_ns, gpu_ns, width_ns;
};

/* The begin of a step, in a recording that reports it. */
struct step_begin {
	uint64_t time_ns;
	uint32_t thread;
	uint32_t cycle_nr;
};

/* Lives as long as the timeline: its strings are here. */
struct timeline_private {
	struct intern *intern;
};

/* One of several spans that do not touch. */
struct tl_span {
	uint64_t start_ns, end_ns;
	uint64_t before_ns; /* summed duration of all spans before it */
};

/* A step before it has its op. */
struct step_place {
	uint64_t start_ns, end_ns;
	uint32_t thread;
	uint32_t parent; /* of timeline.ops, TL_NONE: none */
	uint32_t step;	 /* of timeline.steps */
	uint32_t flags;
};

/* read/context.c: what all readers of events share. */
struct build_context {
	uint32_t *process_of; /* by gp_ev_head.process */
	struct hash pids;     /* pid -> how many processes have it */
	struct hash thread_of;
	uint64_t last_thread_key;
	uint32_t last_thread;
	uint64_t window_start_ns, window_end_ns; /* events outside are dropped */
	uint64_t first_ns, last_ns;		 /* of all events */
};

/* read/read.c */
struct build_reader {
	struct hash name_of;
	VEC(struct tl_name) names;
	uint64_t events_nr;
	uint64_t memory_before;	    /* used by this process when reading began */
	struct memory_now short_of; /* set if memory ran short: `own` is what reading took */
	uint64_t paused_until_ns;
};

/* read/windows.c */
struct build_windows {
	bool exact;	/* windows of a budget: events in none of them are dropped */
	bool of_gpu;	/* windows of sampling within a budget: of CUPTI's records only */
	bool any_marks; /* the latter were recorded, though perhaps none has a length */
	VEC(struct tl_span) gpu_unobserved;	/* GPUs were not observed */
	VEC(struct tl_span) gpu_unwanted;	/* and were not meant to be */
	uint64_t least_steps_nr, last_steps_nr; /* as the windows report */
	uint64_t unused_nr; /* windows by time that were dropped, as most are by steps */
	uint64_t cut_nr;    /* ops that a window's end cut off */
};

/* read/inputs.c */
struct build_inputs {
	bool any;
	struct hash of;	       /* id -> of timeline.inputs */
	uint64_t invalid_nr;   /* malformed lists, and ops whose list is missing */
	uint64_t valueless_nr; /* ops whose scalars' values were not recorded */
};

/* read/samples.c */
struct build_samples {
	struct hash stack_of; /* id -> of timeline.sampled_stacks */
	/* Samples without a stack, with an incomplete one, and with one that was searched for. */
	uint64_t stackless_nr, cut_nr, searched_nr;
};

/* read/modules.c */
struct build_modules {
	VEC(struct raw_module_call) calls;
	uint64_t invalid_nr;
};

/* read/tensors.c: the memory that ops were called with. */
struct build_tensors {
	VEC(struct raw_tensors) of_ops;
	VEC(uint64_t) words;
	struct hash by_instance; /* -> of_ops */
	uint64_t invalid_nr;	 /* malformed events of tensors */
	uint64_t device_nr;	 /* tensors on another device than their memory was allocated on */
};

/* read/tensors.c: what operators may write to. */
struct build_schemas {
	VEC(struct raw_schema) all;
	struct hash of_name; /* process and name -> all */
	struct hash of_op;   /* process and op's name -> the same, or TL_NONE */
	uint64_t missing_nr; /* names of operators that no schema describes */
};

/* read/gpu_read.c, and the steps that join its events. */
struct build_gpu {
	VEC(struct raw_api) apis;
	VEC(struct api_key) api_keys; /* after build_api(): sorted by key, then start */
	VEC(struct raw_cuda_event) events;
	struct hash name_of;
	struct hash ranks_of; /* hash of process and communicator -> ranks */
	struct hash clock_of; /* process -> its last reading in `clocks` */
	VEC(struct clock_reading) clocks;
};

/* build/tree.c, build/instances.c */
struct build_tree {
	/* The parent instance of each op of timeline.ops, until build_tree() places the ops. Until
	 * build_python_calls() the op's python_call is same_calls of struct gp_ev_op_inputs. */
	VEC(uint64_t) parents;
	VEC(struct sort_item) missing; /* parents that are not open, with their children */
	/* After build_tree(): the instances of all ops, sorted; and, for each of these places, the
	 * least parent instance from there on in its thread. */
	struct sort_item *by_instance;
	uint64_t *oldest_parent;
	/* After build_tree(): where each thread's ops begin in timeline.ops, and their end. */
	uint32_t *thread_ops;
};

/* build/steps.c */
struct build_steps {
	bool show;		       /* give each step an op */
	VEC(struct step_begin) begins; /* in order of time */
	VEC(struct step_place) places; /* steps without an op of their own */
};

/* build/python_calls.c */
struct build_python_calls {
	bool any;	      /* ops report which Python calls they share */
	uint64_t unknown_nr;  /* ops that do not, though they have a stack */
	uint64_t cut_nr;      /* calls shown in pieces, as an op between them was not recorded */
	uint64_t crossing_nr; /* calls dropped, as an annotation that began in them outlived them */
	uint64_t unplaced_nr; /* calls of modules that match no call of a Python function */
};

/* A timeline under construction. All zero at first but for `t` and steps.show. Each part belongs to
 * the file that its comment names. */
struct build {
	struct timeline *t;
	int err; /* why reading stopped */
	uint64_t counts[TL_COUNTER_NR];
	VEC(struct raw_memory) memory;
	struct build_context context;
	struct build_reader reader;
	struct build_windows windows;
	struct build_inputs inputs;
	struct build_samples samples;
	struct build_modules modules;
	struct build_tensors tensors;
	struct build_schemas schemas;
	struct build_gpu gpu;
	struct build_tree tree;
	struct build_steps steps;
	struct build_python_calls python_calls;
};

/* Reads events into columns; processes, threads and names into the timeline. 0 or -errno. */
int build_read(struct build *b, struct recording *rec);

/* Read windows into the timeline, before anything else is read; and, once the timeline's own window
 * is known, the gaps between them. 0 or -errno. */
int build_windows(struct build *b, struct recording *rec);
int build_window_gaps(struct build *b);

/* Call once everything is read. Sum up for how long no window was wanted, and weigh each window: it
 * stands for all the wanted time or steps since the one before it. */
void build_gpu_unwanted(struct build *b);
void build_window_weights(struct build *b);

/* Call once all pauses are known. Finds when GPUs were not observed, 0 or -errno; and how much of a
 * span they were. */
int build_gpu_unobserved(struct build *b);
uint64_t build_gpu_seen_ns(const struct build *b, uint64_t from_ns, uint64_t to_ns);

/* Reads one list of inputs into the timeline. 0 or -errno. */
int build_inputs(struct build *b, const struct gp_ev_inputs *e, size_t bytes);

/* Part of build_read(): reads an event about GPUs. 0, also for other kinds, or -errno. */
int build_read_gpu(struct build *b, const void *event, size_t bytes);

/* Sorts the ops and nests them. 0 or -errno. */
int build_tree(struct build *b);

/* Part of build_tree(), on nested ops: finds the steps and, with b->steps.show, gives each an op. 0
 * or -errno. */
int build_steps(struct build *b);

/* Part of build_steps(): puts an op for each step above those that lie in it. */
int build_show_steps(struct build *b);

/* Joins the records of each API call, and puts the calls into the ops. 0 or -errno. */
int build_api(struct build *b);

/* Counts floating-point operations of ops whose inputs are known. 0 or -errno. */
int build_flops(struct build *b);

/* Part of build_api(): pairs the two records of each call. `order` sorts the raw calls by thread
 * and start. The uprobe's record stays, CUPTI's is marked gone. 0 or -errno. */
int build_api_join(struct build *b, const struct sort_item *order);

/* Marks the ops that torch.profiler's table leaves out. 0 or -errno. */
int build_collapse(struct build *b);

/* Reads one call of a module. 0 or -ENOMEM. */
int build_module_call(struct build *b, const struct gp_ev_module_call *e);

/* Call after build_modules(): finds the calls of Python functions, and the call of each op. 0 or
 * -ENOMEM. */
int build_python_calls(struct build *b);

/* Call after build_python_calls(): sorts garbage collections, and lengthens the calls around
 * them. */
void build_python_gcs(struct build *b);

/* Finds modules, their calls, and the call of each op. 0 or -ENOMEM. */
int build_modules(struct build *b);

/* Finds the forward ops of backward ops. 0 or -ENOMEM. */
int build_forward(struct build *b);

/* Joins GPU work with its calls and ops, and sums up the use of streams and devices. 0 or
 * -errno. */
int build_gpu(struct build *b);

/* Call after build_api(): the last call with this correlation id that began before `limit_ns` plus
 * the error of the clocks, or TL_NONE. */
uint32_t build_gpu_call(const struct build *b, uint32_t process, uint32_t correlation_id,
			uint64_t limit_ns);

/* Part of build_gpu(): finds which records of events are waited for, and keeps the measured ones. 0
 * or -errno. */
int build_gpu_events(struct build *b);

/* Part of build_gpu(): chooses the row of each piece of work in a drawing. 0 or -errno. */
int build_gpu_lanes(struct build *b);

/* Part of build_tree(): sorts the instances and counts missing parents. 0 or -errno. */
int build_instances(struct build *b);

/* The sums of all ops, for adding; allocated on first use. NULL: out of memory. */
struct tl_op_sums *build_op_sums(struct build *b);

/* Whether an op without an event had ended, so that its event was lost. If not, it was still open
 * when its thread or the capture ended. */
bool build_instance_ended(const struct build *b, uint64_t instance);

/* Pairs allocations and frees, keeps totals, attributes to ops. 0 or -errno. */
int build_memory(struct build *b);

/* Read one op's tensors, or what a process's operators may write. 0 or -ENOMEM. */
int build_tensors(struct build *b, const struct gp_ev_tensors *e, size_t bytes);
int build_schemas(struct build *b, const struct gp_ev_schemas *e, size_t bytes);

/* Reads one sample; and sorts all of them, at the end. 0 or -errno. */
int build_sample(struct build *b, const struct gp_ev_sample *e);
int build_samples(struct build *b);

/* Puts the memory of tensors into categories. 0 or -ENOMEM. */
int build_categories(struct build *b);

/* Whether a memory event has a possible size. */
bool build_memory_possible(const struct raw_memory *m);

/* Call last: gathers the counters of what is missing, the recording's and the join's. 0 or
 * -ENOMEM. */
int build_losses(struct build *b);

/* The innermost op of the thread that is open at this time, or TL_NONE. *ret_gap (may be NULL): the
 * room around that time between the op's children. */
uint32_t build_op_at(const struct build *b, uint32_t thread, uint64_t time_ns,
		     struct op_gap *ret_gap);

/* The op with this instance, or TL_NONE. */
uint32_t build_op_of_instance(const struct build *b, uint64_t instance);

#endif /* GP_TIMELINE_MODEL_BUILD_H */
