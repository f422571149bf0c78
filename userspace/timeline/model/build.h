/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What is needed while a timeline is built, and the steps of building, whose order is that of
 * timeline.c. Private to this room. Every step takes whatever a damaged or forged recording holds:
 * what cannot be true is repaired or left out, and counted.
 */
#ifndef GP_TIMELINE_MODEL_BUILD_H
#define GP_TIMELINE_MODEL_BUILD_H

#include "base/hash.h"
#include "base/intern.h"
#include "base/memory.h"
#include "timeline/model/sort.h"
#include "timeline/model/timeline.h"

/* What the join finds wrong; each ends up in timeline.losses. */
enum tl_counter {
	TL_TIME_INVALID = 0,	   /* ops that end before they begin, and times of no real clock */
	TL_INSTANCE_DUPLICATE = 1, /* ops with an instance that another has already */
	TL_PARENT_MISSING = 2,	   /* ops whose parent was lost */
	TL_NESTING_REPAIRED = 3,   /* ops cut so that they lie within their parent */
	TL_PROCESS_UNKNOWN = 4,	   /* processes that the recording does not name */
	TL_MEMORY_OP_MISSING = 5,  /* memory events whose op was lost */
	TL_MEMORY_INVALID = 6,	   /* memory events with a size that cannot be */
	TL_FREE_LOST = 7,	   /* allocations at an address whose free was not seen */
	TL_FREE_UNKNOWN = 8,	   /* added to the recording's own counter of this name */
	/* From here on only where the recording has GPU events. */
	TL_API_TIME_INVALID = 9,  /* API calls that end before they begin, or of no real clock */
	TL_API_OP_MISSING = 10,	  /* API calls whose op was lost */
	TL_API_UNJOINED = 11,	  /* calls that of uprobe and CUPTI only one saw, which see both */
	TL_GPU_TIME_INVALID = 12, /* GPU work that ends before it begins, or never began */
	TL_GPU_UNMATCHED = 13,	  /* GPU work whose API call is not there */
	TL_LAUNCH_UNMATCHED = 14, /* kernel launches whose kernel is not there */
	TL_GPU_EARLY = 15,	  /* GPU work that began before its call, by the clocks' error */
	TL_GPU_NOT_DRAWN = 16,	  /* overlapping GPU work that found no row in the trace */
	TL_SYNC_DEVICE_UNKNOWN = 17, /* synchronisations of a context with no work of one device */
	TL_COUNTER_NR = 18,
};

/* Later times and larger sizes than these are not believed; sums of two stay in 64 bits. */
#define TL_TIME_END_NS (1ULL << 62)
#define TL_SIZE_END    (1LL << 50)

/* How many open ops are looked at to find one: more than any honest capture has. */
#define TL_SEARCH_DEPTH (4 * GP_OP_DEPTH)

struct raw_memory {
	uint64_t time_ns, instance, address;
	int64_t bytes;
	uint64_t allocated_bytes, reserved_bytes;
	uint32_t thread;
	uint32_t stack_id;
	int16_t device_type, device_index;
	uint8_t flags;
	bool before; /* the window: it only says how large what is freed later is */
	uint32_t op; /* after build_memory(): of timeline.ops, or TL_NONE */
};

/* What one op was called with: of build.tensors.words. */
struct raw_tensors {
	uint64_t instance;
	uint32_t at, nr;
};

/* One call of a module, before it has its place. */
struct raw_module_call {
	struct tl_module_call call; /* without module and parent */
	uint64_t object;
	const char *type; /* interned */
};

/* What one overload may write: see gp_ev_schemas. */
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

/* An API call as GPU work names it. */
struct api_key {
	uint64_t key; /* process and correlation id */
	uint64_t start_ns;
	uint32_t api;
};

/* Where a call can lie among the ops of its thread. */
struct op_gap {
	uint32_t op; /* innermost open op, or TL_NONE */
	uint64_t low_ns, high_ns;
};

/* The last reading of a process's clocks. */
struct clock_reading {
	uint64_t time_ns, gpu_ns, width_ns;
};

/* Where a step begins, in a recording that says it. */
struct step_begin {
	uint64_t time_ns;
	uint32_t thread;
	uint32_t cycle_nr;
};

/* Stays with the timeline: its strings live here. */
struct timeline_private {
	struct intern *intern;
};

/* One of several that do not touch. */
struct tl_span {
	uint64_t start_ns, end_ns;
	uint64_t before_ns; /* all that come before it */
};

/* Where a step lies before it has its op. */
struct step_place {
	uint64_t start_ns, end_ns;
	uint32_t thread;
	uint32_t parent; /* of timeline.ops, TL_NONE: none */
	uint32_t step;	 /* of timeline.steps */
	uint32_t flags;
};

/* read/context.c: what all readers of events ask. */
struct build_context {
	uint32_t *process_of; /* by the 16 bits of an event */
	struct hash pids;     /* pid -> how many processes have it */
	struct hash thread_of;
	uint64_t last_thread_key;
	uint32_t last_thread;
	uint64_t window_start_ns, window_end_ns; /* what lies outside is left out */
	uint64_t first_ns, last_ns;		 /* over all events */
};

/* read/read.c */
struct build_reader {
	struct hash name_of;
	VEC(struct tl_name) names;
	uint64_t events_nr;
	uint64_t memory_before;	    /* that the process took when it began to read */
	struct memory_now short_of; /* memory, `own` of it by reading; 0: it is not */
	uint64_t paused_until_ns;
};

/* read/windows.c */
struct build_windows {
	bool exact;	/* a budget's: what lies in none of them is left out */
	bool of_gpu;	/* of samples within a budget: of CUPTI's records alone */
	bool any_marks; /* of those: there may be none, but there was to be one */
	VEC(struct tl_span) gpu_unobserved;	/* nobody looked at GPUs */
	VEC(struct tl_span) gpu_unwanted;	/* nor was anybody to */
	uint64_t least_steps_nr, last_steps_nr; /* as windows say */
	uint64_t unused_nr;			/* by time, where most are by steps: left out */
	uint64_t cut_nr; /* ops that began in a window and did not end in it */
};

/* read/inputs.c */
struct build_inputs {
	bool any;
	struct hash of;	       /* id -> of timeline.inputs */
	uint64_t invalid_nr;   /* lists that make no sense, ops whose list is missing */
	uint64_t valueless_nr; /* ops whose scalars' values were not recorded */
};

/* read/samples.c */
struct build_samples {
	struct hash stack_of; /* id -> of timeline.sampled_stacks */
	/* Samples with no stack, with one that is not whole, with one that was searched for. */
	uint64_t stackless_nr, cut_nr, searched_nr;
};

/* read/modules.c */
struct build_modules {
	VEC(struct raw_module_call) calls;
	uint64_t invalid_nr;
};

/* read/tensors.c: which memory ops were called with. */
struct build_tensors {
	VEC(struct raw_tensors) of_ops;
	VEC(uint64_t) words;
	struct hash by_instance; /* -> of_ops */
	uint64_t invalid_nr;	 /* events of tensors that make no sense */
	uint64_t device_nr;	 /* tensors that lie on another device than was allocated */
};

/* read/tensors.c: what operators may write to. */
struct build_schemas {
	VEC(struct raw_schema) all;
	struct hash of_name; /* process and name -> all */
	struct hash of_op;   /* process and op's name -> the same, or TL_NONE */
	uint64_t missing_nr; /* names of operators that no schema describes */
};

/* read/gpu_read.c, and the steps that join it. */
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
	/* Until build_tree() has placed them, the parent instance of each op of timeline.ops, whose
	 * python_call is same_calls of struct gp_ev_op_inputs until build_python_calls(). */
	VEC(uint64_t) parents;
	VEC(struct sort_item) missing; /* parents that are not open, and whose they are */
	/* After build_tree(): every op's instance, sorted; and for each place the least parent
	 * instance from there on in its thread. */
	struct sort_item *by_instance;
	uint64_t *oldest_parent;
	/* After build_tree(): where each thread's ops begin in timeline.ops; one more at the end.
	 */
	uint32_t *thread_ops;
};

/* build/steps.c */
struct build_steps {
	bool show;		       /* an op for each */
	VEC(struct step_begin) begins; /* in order of time */
	VEC(struct step_place) places; /* of the steps that have no op of their own */
};

/* build/python_calls.c */
struct build_python_calls {
	bool any;	      /* ops tell which Python calls they share */
	uint64_t unknown_nr;  /* ops that do not, though they have a stack */
	uint64_t cut_nr;      /* calls shown in pieces: an op between was not recorded */
	uint64_t crossing_nr; /* calls left out: an annotation begun in them went on */
	uint64_t unplaced_nr; /* calls of modules that are none of Python functions */
};

/* A timeline while it is built. All zero at first but for the timeline and steps.show. Each part
 * belongs to the file that it names. */
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

/* Events into columns; processes, threads and names into the timeline. 0 or -errno. */
int build_read(struct build *b, struct recording *rec);

/* Windows into the timeline, before anything else is read; what lies between them, once its own
 * window is known. 0 or -errno. */
int build_windows(struct build *b, struct recording *rec);
int build_window_gaps(struct build *b);

/* Once all is read: for how long no window was wanted, and for how much each stands: for all that
 * came since the one before it, as far as one was wanted. */
void build_gpu_unwanted(struct build *b);
void build_window_weights(struct build *b);

/* Once all pauses are known: when nobody looked at GPUs. 0 or -errno. And how long of a span
 * somebody did. */
int build_gpu_unobserved(struct build *b);
uint64_t build_gpu_seen_ns(const struct build *b, uint64_t from_ns, uint64_t to_ns);

/* One list of inputs into the timeline. 0 or -errno. */
int build_inputs(struct build *b, const struct gp_ev_inputs *e, size_t bytes);

/* Of build_read(): an event about GPUs. 0 (also if it is of another kind) or -errno. */
int build_read_gpu(struct build *b, const void *event, size_t bytes);

/* Sorts the ops and nests them. 0 or -errno. */
int build_tree(struct build *b);

/* Of build_tree(), on nested ops: finds the steps and, if b->steps.show, puts an op for each into
 * the tree. 0 or -errno. */
int build_steps(struct build *b);

/* Of build_steps(): the op for each step, above those that lie in it. */
int build_show_steps(struct build *b);

/* Joins what was seen of API calls and puts them into the ops. 0 or -errno. */
int build_api(struct build *b);

/* Floating-point operations of the ops whose inputs are known. 0 or -errno. */
int build_flops(struct build *b);

/* Of build_api(): finds the two records of each call, of raw calls in `order` by thread and start.
 * The uprobe's stays, the other is gone. 0 or -errno. */
int build_api_join(struct build *b, const struct sort_item *order);

/* Marks what torch.profiler's table leaves out. 0 or -errno. */
int build_collapse(struct build *b);

/* One call of a module into the build. 0 or -ENOMEM. */
int build_module_call(struct build *b, const struct gp_ev_module_call *e);

/* After build_modules(): calls of Python functions, and which of them each op is in. 0 or -ENOMEM.
 */
int build_python_calls(struct build *b);

/* After build_python_calls(): sorts garbage collections, and lengthens calls around them. */
void build_python_gcs(struct build *b);

/* Modules, their calls, and which of them each op is in. 0 or -ENOMEM. */
int build_modules(struct build *b);

/* Forward ops of backward ops. 0 or -ENOMEM. */
int build_forward(struct build *b);

/* GPU work to its calls and ops; use of streams and devices. 0 or -errno. */
int build_gpu(struct build *b);

/* After build_api(): the last call of this correlation id that began before `limit_ns`, a little
 * later by the clocks' error included, or TL_NONE. */
uint32_t build_gpu_call(const struct build *b, uint32_t process, uint32_t correlation_id,
			uint64_t limit_ns);

/* Of build_gpu(): which records of events are waited for, and those that were measured. 0 or
 * -errno. */
int build_gpu_events(struct build *b);

/* Of build_gpu(): chooses a row for each piece of work in a drawing. 0 or -errno. */
int build_gpu_lanes(struct build *b);

/* Of build_tree(): sorts the instances and counts what is missing. 0 or -errno. */
int build_instances(struct build *b);

/* The sums of all ops, to add to; they are made when first asked for. NULL: out of memory. */
struct tl_op_sums *build_op_sums(struct build *b);

/* Whether the op of this instance, for which there is no event, had ended: it was lost. If not, it
 * was still open when its thread or the capture ended. */
bool build_instance_ended(const struct build *b, uint64_t instance);

/* Pairs allocations and frees, keeps totals, attributes to ops. 0 or -errno. */
int build_memory(struct build *b);

/* One op's tensors, or what a process's operators may write, into the build. 0 or -ENOMEM. */
int build_tensors(struct build *b, const struct gp_ev_tensors *e, size_t bytes);
int build_schemas(struct build *b, const struct gp_ev_schemas *e, size_t bytes);

/* One sample into the timeline, and afterwards all of them in order. 0 or -errno. */
int build_sample(struct build *b, const struct gp_ev_sample *e);
int build_samples(struct build *b);

/* Puts the memory of tensors into categories. 0 or -ENOMEM. */
int build_categories(struct build *b);

/* Whether an event of memory has a size that can be. */
bool build_memory_possible(const struct raw_memory *m);

/* At last: the counters of what is missing, the recording's and the join's. 0 or -ENOMEM. */
int build_losses(struct build *b);

/* The innermost op of the thread that is open at this time, or TL_NONE; with the room that it has
 * there between its children in *ret_gap (may be NULL). */
uint32_t build_op_at(const struct build *b, uint32_t thread, uint64_t time_ns,
		     struct op_gap *ret_gap);

/* The op with this instance, or TL_NONE. */
uint32_t build_op_of_instance(const struct build *b, uint64_t instance);

#endif /* GP_TIMELINE_MODEL_BUILD_H */
