/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The one header that the BPF programs, gpuprof and the collector share: every event, ring and
 * counter that crosses a border between them.
 *
 * Rules: explicit values, explicit padding, little endian, 8-byte alignment. Fields of an event
 * keep their place once a released recording holds it: new ones are added at its end, and anything
 * else that is new becomes a new kind. All times are
 * CLOCK_MONOTONIC nanoseconds. A `tid` is a thread id in the initial PID namespace.
 */
#ifndef GP_BPF_WIRE_H
#define GP_BPF_WIRE_H

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif

#include "cuda_layout.h"
#include "glob_tokens.h"
#include "walks.h"

#define GP_WIRE_VERSION 1

/* The kinds of events. A stream is ordered by `time_ns` for each thread only. */
enum gp_event_kind {
	GP_EV_OP = 1,		/* gp_ev_op: one finished op, annotation or autograd node */
	GP_EV_MEMORY = 2,	/* gp_ev_memory: one allocation (+) or free (-) */
	GP_EV_THREAD = 3,	/* gp_ev_thread: a thread was seen for the first time */
	GP_EV_PROCESS = 4,	/* gp_ev_process: a process forked, called exec or exited */
	GP_EV_MAPS = 5,		/* gp_ev_head only: the loader changed the mappings */
	GP_EV_NAME = 6,		/* gp_ev_name: the collector's name ids (never in a recording) */
	GP_EV_API = 7,		/* gp_ev_api: one CUDA runtime or driver call, by uprobe or CUPTI */
	GP_EV_KERNEL = 8,	/* gp_ev_kernel: one kernel on a GPU, from CUPTI */
	GP_EV_GPU_MEMORY = 9,	/* gp_ev_gpu_memory: one copy or memset on a GPU, from CUPTI */
	GP_EV_SYNC = 10,	/* gp_ev_sync: one synchronisation, from CUPTI */
	GP_EV_CLOCK = 11,	/* gp_ev_clock: one reading of GPU clock and CLOCK_MONOTONIC */
	GP_EV_STACK = 12,	/* gp_ev_stack: a stack's id and frames (never in a recording) */
	GP_EV_CUDA_MEMORY = 13, /* gp_ev_cuda_memory: CUDA allocated or freed memory */
	GP_EV_DEVICE = 14,	/* gp_ev_device: a GPU, as the driver describes it */
	GP_EV_OVERHEAD = 15,	/* gp_ev_overhead: time that CUPTI or the driver took, from CUPTI */
	GP_EV_UNWIND = 16,	/* gp_ev_unwind: code without unwind table (never in a recording) */
	GP_EV_NATIVE = 17,	/* gp_ev_native: a native stack's frames (never in a recording) */
	GP_EV_PAUSE = 18,	/* gp_ev_pause: nothing was recorded for a time */
	GP_EV_STEP = 19,	/* gp_ev_step: a step begins, and the one before it ends */
	GP_EV_INPUTS = 20,	/* gp_ev_inputs: the inputs of an inputs_id, before its first use */
	GP_EV_TENSORS = 21,	/* gp_ev_tensors: where an op's tensors are stored */
	GP_EV_SCHEMAS = 22,	/* gp_ev_schemas: the arguments that operators may write to */
	GP_EV_FOUND_NAME = 24, /* gp_ev_found_name: a name seen by a probe (never in a recording) */
	GP_EV_COLLECTIVE = 28, /* gp_ev_collective: one call of NCCL, by uprobe */
	GP_EV_SAMPLE = 30,     /* gp_ev_sample: what a thread was doing when it was sampled */
	GP_EV_TRIGGER = 34,    /* gp_ev_trigger: why a flight recorder wrote its recording */
	GP_EV_THREAD_STACK = 35, /* gp_ev_thread_stack: a thread's stack at a trigger */
	GP_EV_MODULE_CALL = 40,	 /* gp_ev_module_call: one call of an nn.Module */
	GP_EV_FUNCTION = 44,	 /* gp_ev_function: the name of a kernel's handle (never in a
				  * recording) */
	GP_EV_CPU_TIME = 36,	 /* gp_ev_cpu_time: a thread's CPU time (never in a recording) */
	GP_EV_WINDOW = 37,	 /* gp_ev_window: a window of exact recording within a budget */
	GP_EV_CUDA_EVENT = 56,	 /* gp_ev_cuda_event: a CUDA event was recorded, from CUPTI */
	GP_EV_PYTHON_GC = 60,	 /* gp_ev_python_gc: Python collected garbage, by uprobe */
};

/* The first 16 bytes of every event. `time_ns` is when the event was complete. */
struct gp_ev_head {
	__u8 kind;     /* enum gp_event_kind */
	__u8 flags;    /* per kind */
	__u16 process; /* index of the process in this capture */
	__u32 tid;     /* 0: not known */
	__u64 time_ns;
};

enum gp_op_flags {
	/* The exit was not seen, because an exception crossed the frame. time_ns is when that was
	 * noticed: an upper bound of the true end. */
	GP_OP_EXCEPTION = 1,
	/* From the in-process callback, not from a uprobe. */
	GP_OP_CALLBACK = 2,
	/* Began and ended on different threads, or outlived the op around it, so that it has no
	 * parent. `head.tid` is the thread on which it began. */
	GP_OP_ASYNC = 4,
};

/* Those values of at::RecordScope that gpuprof distinguishes. */
enum gp_op_scope {
	GP_SCOPE_FUNCTION = 0, /* an operator */
	GP_SCOPE_BACKWARD = 1, /* an autograd node */
	GP_SCOPE_SCRIPT = 2,   /* a TorchScript function */
	GP_SCOPE_USER = 7,     /* record_function and other annotations */
};

/*
 * One finished op. Children are emitted before their parents. `instance` is unique in the capture:
 * the high 32 bits number the thread (1, 2, ...), the low ones the op on that thread; 0 is "none".
 * `parent` is the instance that was innermost open on the thread at entry.
 */
struct gp_ev_op {
	struct gp_ev_head head; /* time_ns: end */
	__u64 start_ns;
	__u64 instance;
	__u64 parent;
	__s64 sequence_nr;    /* autograd's, -1: none */
	__u64 forward_thread; /* PyTorch's own thread number of the forward op, 0: none */
	__u32 name_id;
	__u32 stack_id;	     /* 0: none */
	__u32 scope;	     /* enum gp_op_scope or another value of at::RecordScope */
	__u32 thread_number; /* PyTorch's own number of this thread, 0: not known */
};

/* A gp_ev_op with more fields: the same kind, distinguished by its length. */
struct gp_ev_op_inputs {
	struct gp_ev_op op;
	__u32 inputs_id; /* 0: none; GP_INPUTS_LOST: there was no room for them */
	/* The number of outermost Python frames of its stack that are still the same calls as
	 * those of the instance before it on its thread, plus 1. 0: not known. */
	__u32 same_calls;
};

/* The deepest nesting of module calls. */
#define GP_MODULE_DEPTH 64

/*
 * One call of an nn.Module, as far as ops show it: from the begin of its first op to the end of its
 * last one. Its ops are those of its thread with instances from `first` to `last`. Emitted when the
 * thread's next op finds that the call is over.
 */
struct gp_ev_module_call {
	struct gp_ev_head head; /* time_ns: end */
	__u64 start_ns;
	__u64 first; /* instances */
	__u64 last;
	__u64 object;  /* address of the module */
	__u32 name_id; /* that of its type */
	__u32 depth;   /* the number of module calls around it */
};

/* In head.flags of gp_ev_pause: within a budget, this pause was requested by the user. */
#define GP_PAUSE_ASKED 4

/* Nothing was recorded from start_ns to head.time_ns, on purpose. */
struct gp_ev_pause {
	struct gp_ev_head head;
	__u64 start_ns;
};

/* A step in a recording by steps without step annotations. head.time_ns is its begin. */
struct gp_ev_step {
	struct gp_ev_head head;
	__u32 cycle_nr; /* operators in a step */
	__u32 reserved;
};

/* The CPU time that a thread has used as an annotation ends on it, whose event follows. */
struct gp_ev_cpu_time {
	struct gp_ev_head head;
	__u64 cpu_ns;
};

enum gp_window_flags {
	GP_WINDOW_STEPS = 1, /* the window begins and ends with a step */
};

/* Recording was on from start_ns to head.time_ns. Events outside of all windows are not part of the
 * recording. A window of no length only gives the number of steps so far. */
struct gp_ev_window {
	struct gp_ev_head head; /* flags: enum gp_window_flags */
	__u64 start_ns;
	__u64 all_steps_nr; /* steps that have ended since the recording began; 0: not known */
	__u64 cost_ns;	    /* CPU time that it cost, including opening and closing */
	__u64 inside_ns;    /* the part of that which the process spent inside of it */
	__u32 steps_nr;	    /* steps in it; 0: not known */
	__u32 reserved;
};

enum gp_trigger {
	GP_TRIGGER_SLOW_STEP = 1,
	GP_TRIGGER_OOM = 2,    /* a request for memory was refused */
	GP_TRIGGER_HANG = 3,   /* for too long no step, or no event if there are no steps */
	GP_TRIGGER_SIGNAL = 4, /* gpuprof was sent a signal */
	GP_TRIGGER_ASKED = 5,  /* gpuprof ctl dump */
};

/* Written by gpuprof; never in a ring. Fields that do not apply are 0. */
struct gp_ev_trigger {
	struct gp_ev_head head; /* time_ns: when it happened, or was noticed */
	__u64 start_ns;		/* start of the step, or of the last step or event before a hang */
	__u64 bound_ns;		/* the limit that was exceeded */
	__u64 usual_ns;		/* the median of the steps before */
	__u64 step_nr;		/* steps that had ended since the capture began */
	__u64 bytes;		/* size of the refused allocation */
	__u32 what;		/* enum gp_trigger */
	__u32 reserved;
};

struct gp_ev_python_gc {
	struct gp_ev_head head; /* time_ns: the end */
	__u64 start_ns;
	__s64 collected;  /* objects; below 0: not known */
	__s32 generation; /* the oldest that was collected; below 0: not known */
	__u32 reserved;
};

/* Written by gpuprof; never in a ring. */
struct gp_ev_thread_stack {
	struct gp_ev_head head;
	__u32 stack_id;
	__u32 reserved;
};

#define GP_INPUTS_LOST 0xffffffffU

/*
 * One list of inputs. `bytes` bytes follow, padded with zeros to a multiple of 8: the inputs in
 * order, each a byte of enum gp_input followed by what its comment lists. A varint has 7 bits in a
 * byte, the low ones first, the top bit set in all but the last byte, and at most 10 bytes.
 */
struct gp_ev_inputs {
	struct gp_ev_head head;
	__u32 inputs_id;
	__u32 bytes;
};

enum gp_input {
	GP_INPUT_OTHER = 0, /* an input without shape or value here: None, a string, ... */
	/* Byte: c10::ScalarType; byte: dimensions; a varint for each size. The strides follow from
	 * the sizes. */
	GP_INPUT_TENSOR = 1,
	GP_INPUT_STRIDED = 2, /* the same, then a varint for each stride */
	GP_INPUT_OPAQUE = 3,  /* a tensor without plain sizes: undefined, symbolic, nested, ... */
	GP_INPUT_INT = 4,     /* varint, zigzag */
	GP_INPUT_DOUBLE = 5,  /* 8 bytes */
	GP_INPUT_FALSE = 6,   /* bool */
	GP_INPUT_TRUE = 7,    /* bool */
	GP_INPUT_TENSOR_LIST = 8, /* byte: items; each TENSOR, STRIDED, OPAQUE or SPARSE */
	GP_INPUT_SCALAR_LIST = 9, /* byte: items; each INT to TRUE or NO_VALUE */
	GP_INPUT_CUT = 10,	  /* the last input, or last item (counted): more were left out */
	GP_INPUT_NO_VALUE = 11,	  /* a scalar without its value: there were too many lists */
	GP_INPUT_SPARSE = 12,	  /* as TENSOR, but without strides */
};

/* The limits beyond which inputs are cut. */
#define GP_INPUTS_MAX	    64
#define GP_INPUT_DIMS_MAX   16
#define GP_INPUT_ITEMS_MAX  32
#define GP_INPUTS_BYTES_MAX 960

/*
 * Where the inputs of an op are stored, emitted when the op begins: `words_nr` words follow. An op
 * with many tensors has several events in a row; `first` is the number of words before. Each input
 * is one word or more in order, with enum gp_tensor in the first word's top byte.
 */
struct gp_ev_tensors {
	struct gp_ev_head head; /* time_ns: when the inputs were read */
	__u64 instance;
	__u32 first;
	__u32 words_nr;
};

enum gp_tensor {
	GP_TENSOR_NOT = 0, /* an input that is not a tensor */
	/* A tensor: the device (GP_TENSOR_CPU and on) in the next byte, then the address of its
	 * storage's first byte; one more word: the storage's bytes. */
	GP_TENSOR_STORED = 1,
	GP_TENSOR_NONE = 2, /* a tensor without storage, or neither plain nor quantized */
	GP_TENSOR_LIST = 3, /* a list: the low 32 bits count the STORED or NONE that follow */
	GP_TENSOR_CUT = 4,  /* the last one: the op had more */
};

#define GP_TENSOR_WHAT(word)	((unsigned int)((word) >> 56))
#define GP_TENSOR_DEVICE(word)	((unsigned int)((word) >> 48 & 0xff))
#define GP_TENSOR_ADDRESS(word) ((word)&0xffffffffffffULL)
#define GP_TENSOR_CPU		0
#define GP_TENSOR_CUDA		1 /* CUDA device n is this plus n */
#define GP_TENSOR_CUDA_NR	200
#define GP_TENSOR_OTHER		255
/* The most words of one op. */
#define GP_TENSOR_WORDS_MAX 8192

/*
 * PyTorch's operators as its library describes them: `bytes` bytes follow, padded with zeros to a
 * multiple of 8. Each overload has a line: the name without "aten::", a space, then a letter for
 * each argument: t a tensor, q a tensor or None, l a list of tensors, k such a list or None, o
 * anything else; upper case if the operator may write to it. Written by gpuprof; never in a ring.
 */
struct gp_ev_schemas {
	struct gp_ev_head head;
	__u32 bytes;
	__u32 reserved;
};

enum gp_memory_flags {
	GP_MEMORY_FREE = 1,	    /* a free: bytes is <= 0, or 0 with SIZE_UNKNOWN */
	GP_MEMORY_SIZE_UNKNOWN = 2, /* a free of memory that was allocated before the capture */
	GP_MEMORY_TOTALS = 4, /* allocated_bytes and reserved_bytes hold the allocator's totals */
	GP_MEMORY_OOM = 8,    /* out of memory: an allocation of `bytes` was refused */
};

/* Those values of c10::DeviceType that gpuprof distinguishes. */
enum gp_device_type { GP_DEVICE_CPU = 0, GP_DEVICE_CUDA = 1 };

struct gp_ev_memory {
	struct gp_ev_head head;
	__u64 instance; /* the op that was open, 0: none */
	__u64 address;
	__s64 bytes;
	__u64 allocated_bytes;
	__u64 reserved_bytes;
	__s16 device_type;  /* enum gp_device_type */
	__s16 device_index; /* -1: none */
	__u32 stack_id;
};

#define GP_COMM_BYTES 16

struct gp_ev_thread {
	struct gp_ev_head head;
	char comm[GP_COMM_BYTES]; /* set by the process: not trusted, perhaps not terminated */
};

enum gp_process_what { GP_PROCESS_EXIT = 1, GP_PROCESS_EXEC = 2, GP_PROCESS_FORK = 3 };

struct gp_ev_process {
	struct gp_ev_head head;
	__u32 what;  /* enum gp_process_what */
	__s32 value; /* exit: the wait status; fork: the child's pid */
};

/* Collector only: `text_bytes` bytes follow, padded with zeros to a multiple of 8. */
struct gp_ev_name {
	struct gp_ev_head head;
	__u32 name_id;
	__u32 text_bytes;
};

/* The text of a name that BPF programs read from the process's memory; longer ones are cut. */
#define GP_FOUND_NAME_BYTES	128
#define GP_FOUND_OVERLOAD_BYTES 64

/* The first name id that BPF programs assign. */
#define GP_FOUND_NAMES 0x800000U

/* The operator or range that `name_id` stands for, before the first event that uses it. Both texts
 * are padded with at least one zero. */
struct gp_ev_found_name {
	struct gp_ev_head head;
	__u32 name_id;
	__u32 reserved;
	char name[GP_FOUND_NAME_BYTES];
	char overload[GP_FOUND_OVERLOAD_BYTES];
};

enum gp_sample_flags {
	GP_SAMPLE_RUNNING = 1,	       /* on a CPU; otherwise the thread waited */
	GP_SAMPLE_KERNEL = 2,	       /* running in the kernel */
	GP_SAMPLE_RUNNABLE = 4,	       /* waiting for a CPU only */
	GP_SAMPLE_UNINTERRUPTIBLE = 8, /* waiting for a disk, a page or a driver */
	GP_SAMPLE_STOPPED = 16,	       /* stopped by a signal or a debugger */
	GP_SAMPLE_MOVED = 32,	       /* ran on while its stack was read, so it has no stack */
};

#define GP_SAMPLE_NO_SYSCALL 0xffffffffU

/*
 * One sample of a thread, or several within one wait. They stand for weight_ns of the thread's
 * time, which is an estimate.
 */
struct gp_ev_sample {
	struct gp_ev_head head; /* time_ns: that of the last sample */
	__u64 start_ns;		/* that of the first sample */
	__u64 weight_ns;
	__u32 nr;	/* samples */
	__u32 stack_id; /* 0: none */
	__u32 syscall;	/* the number of the system call that it was in; see `machine` */
	__u32 reserved;
};

/* State of one CPU for samples taken in the scheduler's tick, one cache line. The CPU itself writes
 * all but timer_turn. */
struct gp_sampled_cpu {
	__u64 ticks;  /* ticks that found any thread running */
	__u64 shared; /* those of them while another thread waited for the CPU */
	__u64 ours;   /* samples of threads that are sampled */
	/* When our own timer began to take the samples; 0: the tick takes them. */
	__u64 timer_turn;
	__u64 reserved[4];
};

/* One Python frame. `check` is a checksum of the code object. It differs if the memory is reused
 * for another code object. */
struct gp_stack_frame {
	__u64 code;
	__s32 lasti; /* as the interpreter keeps it: see struct gp_python */
	__u32 check;
};

/* A new Python stack; `frames_nr` frames follow, innermost first. head.flags are enum
 * gp_stack_flags. Ids count up from 1 over all processes of a capture. */
struct gp_ev_stack {
	struct gp_ev_head head;
	__u32 stack_id;
	__u32 frames_nr;
	/* One bit for each frame: it is the outermost frame of a call of the interpreter. */
	__u64 entries[GP_STACK_FRAMES / 64];
};

/* A walk met code at `address` (in process head.process) without an unwind table so far. */
struct gp_ev_unwind {
	struct gp_ev_head head;
	__u64 address;
};

/*
 * A new native stack; the addresses of `frames_nr` instructions follow, innermost first. That is
 * the next instruction for the innermost frame, for frames that a signal interrupted and for the
 * kernel's frames between those and the handler, and the last byte of the call for all others. Ids
 * and flags are as in gp_ev_stack. `python_id` is the Python stack that the thread had at the same
 * moment; 0: none or not wanted.
 */
struct gp_ev_native {
	struct gp_ev_head head;
	__u32 stack_id;
	__u32 python_id;
	__u32 frames_nr;
	/* The number of changes of the mappings that the walk knew of. Later changes may have
	 * put other code at these addresses. */
	__u32 maps_changes;
	/* The number of kernel addresses that follow the `frames_nr` others, innermost first: the
	 * innermost frame called the kernel, or was interrupted by it. */
	__u32 kernel_nr;
	__u32 reserved;
	/* One bit for each frame: it has one of the interpreter's own frames, so it is a call of
	 * the interpreter. All zero: there are no such frames (up to 3.11). */
	__u64 marks[GP_STACK_FRAMES / 64];
};

/* Counters of what went missing, and why. Every output has them, even at zero. */
enum gp_loss {
	GP_LOSS_RING_FULL = 0,	       /* events for which the kernel's ring had no room */
	GP_LOSS_DEPTH = 1,	       /* ops beyond the limits of nesting or of open ops */
	GP_LOSS_THREAD = 2,	       /* hits on a thread that could not be given a state */
	GP_LOSS_OPEN_AT_START = 3,     /* exits of ops that were open when the capture began */
	GP_LOSS_OPEN_AT_END = 4,       /* ops that were open when the capture ended */
	GP_LOSS_EXCEPTION = 5,	       /* ops that an exception ended: their end is a bound */
	GP_LOSS_FREE_UNKNOWN = 6,      /* frees of memory allocated before the capture */
	GP_LOSS_PROBE = 7,	       /* functions that could not be probed */
	GP_LOSS_RECORD = 8,	       /* events that were refused because a field was invalid */
	GP_LOSS_COLLECTOR_FULL = 9,    /* events for which the collector's ring had no room */
	GP_LOSS_NAMES = 10,	       /* names without room (shown as "?") or that were not read */
	GP_LOSS_COLLECTOR_LEFT = 11,   /* times a collector left by itself, missing events */
	GP_LOSS_STACK_INCOMPLETE = 12, /* events whose stack is truncated or incomplete */
	GP_LOSS_STACK_ROOM = 13,       /* events without their stack, because there was no room for
					* it or it could not be walked */
	GP_LOSS_GPU_TIME = 14,	       /* CUPTI records without start or end, or that end before
					* they start */
	GP_LOSS_GPU_CLOCK = 15,	    /* CUPTI records whose time is ambiguous: its clock was set */
	GP_LOSS_GPU_DROPPED = 16,   /* CUPTI records without a buffer: at least so many */
	GP_LOSS_CHILD_LATE = 17,    /* child processes whose beginning was not seen */
	GP_LOSS_CHILD_MISSED = 18,  /* child processes that are not in the capture */
	GP_LOSS_BOXED_UNSEEN = 19,  /* operator calls whose end or name no probe can see */
	GP_LOSS_SCRIPT_UNSEEN = 20, /* TorchScript function calls, which no probe can see */
	GP_LOSS_API_END = 21,	    /* CUDA API calls whose end was not seen */
	GP_LOSS_UNWIND_TABLE = 22,  /* native stacks cut at code without a table so far, or walked
				     * while the mappings changed */
	GP_LOSS_UNWIND_RULE = 23,   /* native stacks cut at code without unwind information */
	GP_LOSS_UNWIND_HARD = 24,   /* native stacks cut at an unsupported unwind rule */
	GP_LOSS_UNWIND_MEMORY = 25, /* native stacks cut at an implausible stack content */
	GP_LOSS_UNWRITTEN = 26,	    /* events that could not be written to any recording */
	GP_LOSS_MODULES = 27,	    /* ops whose calling modules are not known */
	GP_LOSS_SAMPLE_MISSED = 28, /* samples not taken when they were due: late timers */
	GP_LOSS_SAMPLE_MOVED = 29,  /* waits whose thread ran on while its stack was read */
	GP_LOSS_KERNEL_STACK = 30,  /* samples in the kernel without their kernel stack */
	GP_LOSS_LINES = 31,	    /* native frames whose source lines were not looked up */
	GP_LOSS_NR = 32,
};

/* The most ops that may be open on one thread. */
#define GP_OP_DEPTH 96

/* The most processes in a capture at a time; events use indices below this. A power of two. */
#define GP_PROCESSES_MAX 1024

#include "wire_gpu.h"
#include "wire_ring.h"

#endif /* GP_BPF_WIRE_H */
