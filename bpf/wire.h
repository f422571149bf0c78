/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The one header shared by the kernel programs, gpuprof and the collector: every event, ring and
 * counter that crosses one of those borders.
 *
 * Rules: explicit values, explicit padding, little endian, 8-byte alignment. An event keeps its
 * layout for ever once a released recording holds it; a new need is a new kind. All times are
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

/* What an event tells. The order within a stream is the order of `time_ns` per thread only. */
enum gp_event_kind {
	GP_EV_OP = 1,		/* gp_ev_op: one finished op, annotation or autograd node */
	GP_EV_MEMORY = 2,	/* gp_ev_memory: one allocation (+) or free (-) */
	GP_EV_THREAD = 3,	/* gp_ev_thread: a thread was seen for the first time */
	GP_EV_PROCESS = 4,	/* gp_ev_process: the target forked, called exec or exited */
	GP_EV_MAPS = 5,		/* gp_ev_head only: the loader changed what is mapped */
	GP_EV_NAME = 6,		/* gp_ev_name: the collector's name ids (never in a recording) */
	GP_EV_API = 7,		/* gp_ev_api: one CUDA runtime or driver call, by uprobe or CUPTI */
	GP_EV_KERNEL = 8,	/* gp_ev_kernel: one kernel on a GPU, from CUPTI */
	GP_EV_GPU_MEMORY = 9,	/* gp_ev_gpu_memory: one copy or memset on a GPU, from CUPTI */
	GP_EV_SYNC = 10,	/* gp_ev_sync: one synchronisation, from CUPTI */
	GP_EV_CLOCK = 11,	/* gp_ev_clock: one bracket of GPU clock and CLOCK_MONOTONIC */
	GP_EV_STACK = 12,	/* gp_ev_stack: a stack's id and frames (never in a recording) */
	GP_EV_CUDA_MEMORY = 13, /* gp_ev_cuda_memory: CUDA gave memory or took it back */
	GP_EV_DEVICE = 14,	/* gp_ev_device: a GPU, as the driver describes it */
	GP_EV_OVERHEAD = 15,	/* gp_ev_overhead: time that CUPTI or the driver took, from CUPTI */
	GP_EV_UNWIND = 16,	/* gp_ev_unwind: code without a table (never in a recording) */
	GP_EV_NATIVE = 17,	/* gp_ev_native: a native stack's frames (never in a recording) */
	GP_EV_PAUSE = 18,	/* gp_ev_pause: nothing was recorded for a time */
	GP_EV_STEP = 19,	/* gp_ev_step: a step begins, and the one before it ends */
	GP_EV_INPUTS = 20,  /* gp_ev_inputs: what an inputs_id stands for; before its first use */
	GP_EV_TENSORS = 21, /* gp_ev_tensors: which memory an op's tensors lie in */
	GP_EV_SCHEMAS = 22, /* gp_ev_schemas: what the operators of a process may write */
	GP_EV_FOUND_NAME = 24, /* gp_ev_found_name: a name seen by a probe (never in a recording) */
	GP_EV_COLLECTIVE = 28, /* gp_ev_collective: one call of NCCL, by uprobe */
	GP_EV_SAMPLE = 30,     /* gp_ev_sample: what a thread was found doing */
	GP_EV_TRIGGER = 34,    /* gp_ev_trigger: why a flight recorder wrote what it held */
	GP_EV_THREAD_STACK = 35, /* gp_ev_thread_stack: where a thread was then */
	GP_EV_MODULE_CALL = 40,	 /* gp_ev_module_call: one call of an nn.Module */
	GP_EV_FUNCTION = 44,	 /* gp_ev_function: what a kernel's handle stands for (never in a
				  * recording) */
	GP_EV_CPU_TIME = 36,	 /* gp_ev_cpu_time: how far a thread is (never in a recording) */
	GP_EV_WINDOW = 37,	 /* gp_ev_window: a window of exact collection within a budget */
	GP_EV_CUDA_EVENT = 56,	 /* gp_ev_cuda_event: a CUDA event was recorded, from CUPTI */
	GP_EV_PYTHON_GC = 60,	 /* gp_ev_python_gc: Python collected garbage, by uprobe */
};

/* First 16 bytes of every event. `time_ns` is when the event was complete. */
struct gp_ev_head {
	__u8 kind;     /* enum gp_event_kind */
	__u8 flags;    /* per kind */
	__u16 process; /* index of the process in this capture */
	__u32 tid;     /* 0: not known */
	__u64 time_ns;
};

enum gp_op_flags {
	/* The exit was not seen (an exception crossed the frame): time_ns is when that was noticed,
	 * an upper bound of the true end. */
	GP_OP_EXCEPTION = 1,
	/* From the in-process callback, not from a uprobe. */
	GP_OP_CALLBACK = 2,
	/* Began and ended on different threads, or outlived what it began in, so that it lies in
	 * nothing. `head.tid` is where it began. */
	GP_OP_ASYNC = 4,
};

/* at::RecordScope's values for the ones we tell apart. */
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

/* A gp_ev_op of which more is known: the same kind, told apart by its length. */
struct gp_ev_op_inputs {
	struct gp_ev_op op;
	__u32 inputs_id; /* 0: none; GP_INPUTS_LOST: they found no place */
	/* Of the Python frames of its stack so many outermost ones are in the calls in which the
	 * instance before it on its thread was, plus 1. 0: not known. */
	__u32 same_calls;
};

/* Calls of modules within each other, at most. */
#define GP_MODULE_DEPTH 64

/*
 * One call of an nn.Module, as far as ops tell: from the begin of the first op in it to the end of
 * the last one. The ops in it are those of its thread with instances from `first` to `last`. Told
 * when the thread's next op finds that it is over.
 */
struct gp_ev_module_call {
	struct gp_ev_head head; /* time_ns: end */
	__u64 start_ns;
	__u64 first; /* instances */
	__u64 last;
	__u64 object;  /* address of the module */
	__u32 name_id; /* of its type */
	__u32 depth;   /* how many calls of modules it lies in */
};

/* Within a budget, of gp_ev_pause's flags: it is not for the budget's sake, but was asked for. */
#define GP_PAUSE_ASKED 4

/* Nothing was collected from start_ns to head.time_ns, as someone wanted. */
struct gp_ev_pause {
	struct gp_ev_head head;
	__u64 start_ns;
};

/* In recordings by steps whose steps no annotation tells. head.time_ns is when it begins. */
struct gp_ev_step {
	struct gp_ev_head head;
	__u32 cycle_nr; /* operators in a step */
	__u32 reserved;
};

/* The CPU time that the thread has used when an annotation on it ends, whose event follows. */
struct gp_ev_cpu_time {
	struct gp_ev_head head;
	__u64 cpu_ns;
};

enum gp_window_flags {
	GP_WINDOW_STEPS = 1, /* it begins and ends where a step does */
};

/* Collection was on from start_ns to head.time_ns, and what lies in no window is not part of the
 * recording. One of no length tells how many steps there have been by then. */
struct gp_ev_window {
	struct gp_ev_head head; /* flags: enum gp_window_flags */
	__u64 start_ns;
	__u64 all_steps_nr; /* steps that have ended since the recording began; 0: not known */
	__u64 cost_ns;	    /* CPU time that it has taken, opening and closing included */
	__u64 inside_ns;    /* of that, what the process has spent within it */
	__u32 steps_nr;	    /* steps in it, 0: they are not known */
	__u32 reserved;
};

enum gp_trigger {
	GP_TRIGGER_SLOW_STEP = 1,
	GP_TRIGGER_OOM = 2,    /* a request for memory was refused */
	GP_TRIGGER_HANG = 3,   /* no step, or where there are none no event, for too long */
	GP_TRIGGER_SIGNAL = 4, /* someone sent gpuprof a signal */
	GP_TRIGGER_ASKED = 5,  /* gpuprof ctl dump */
};

/* Written by gpuprof; never in a ring. What does not apply is 0. */
struct gp_ev_trigger {
	struct gp_ev_head head; /* time_ns: when it happened, or was noticed */
	__u64 start_ns;		/* of the step; of the last step or event before a hang */
	__u64 bound_ns;		/* what it was not to take longer than */
	__u64 usual_ns;		/* the median of the steps before */
	__u64 step_nr;		/* steps that had ended since the capture began */
	__u64 bytes;		/* asked for and not given */
	__u32 what;		/* enum gp_trigger */
	__u32 reserved;
};

struct gp_ev_python_gc {
	struct gp_ev_head head; /* time_ns: the end */
	__u64 start_ns;
	__s64 collected;  /* objects; below 0: not known */
	__s32 generation; /* the oldest that was looked at; below 0: not known */
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
 * order, each a byte of enum gp_input and what it says there. A varint has 7 bits a byte, the low
 * ones first, the top bit set in all but the last; at most 10 bytes.
 */
struct gp_ev_inputs {
	struct gp_ev_head head;
	__u32 inputs_id;
	__u32 bytes;
};

enum gp_input {
	GP_INPUT_OTHER = 0, /* nothing that has a shape or a value here: None, a string, ... */
	/* Byte: c10::ScalarType; byte: dimensions; varint each: sizes. Strides as they follow from
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
	GP_INPUT_CUT = 10,	  /* last of all, or last of a list and counted there: more was */
	GP_INPUT_NO_VALUE = 11,	  /* a scalar, its value not told: there were too many lists */
	GP_INPUT_SPARSE = 12,	  /* as TENSOR, but there are no strides */
};

/* More than these are cut. */
#define GP_INPUTS_MAX	    64
#define GP_INPUT_DIMS_MAX   16
#define GP_INPUT_ITEMS_MAX  32
#define GP_INPUTS_BYTES_MAX 960

/*
 * What an op is called with, told when it begins: `words_nr` words follow. Of an op with many
 * tensors several events, one after the other; `first` is how many words came before. Each input
 * in order is a word of enum gp_tensor, what it is in the top byte.
 */
struct gp_ev_tensors {
	struct gp_ev_head head; /* time_ns: when the inputs were read */
	__u64 instance;
	__u32 first;
	__u32 words_nr;
};

enum gp_tensor {
	GP_TENSOR_NOT = 0, /* an input that is no tensor */
	/* A tensor: the device (GP_TENSOR_CPU and on) in the next byte, then the address of its
	 * storage's first byte; one more word: the storage's bytes. */
	GP_TENSOR_STORED = 1,
	GP_TENSOR_NONE = 2, /* a tensor without storage, or neither plain nor quantized */
	GP_TENSOR_LIST = 3, /* a list: the low 32 bits say how many STORED or NONE follow */
	GP_TENSOR_CUT = 4,  /* last of all: the op had more */
};

#define GP_TENSOR_WHAT(word)	((unsigned int)((word) >> 56))
#define GP_TENSOR_DEVICE(word)	((unsigned int)((word) >> 48 & 0xff))
#define GP_TENSOR_ADDRESS(word) ((word)&0xffffffffffffULL)
#define GP_TENSOR_CPU		0
#define GP_TENSOR_CUDA		1 /* CUDA device n is this plus n */
#define GP_TENSOR_CUDA_NR	200
#define GP_TENSOR_OTHER		255
/* Of one op at most. */
#define GP_TENSOR_WORDS_MAX 8192

/*
 * Operators of PyTorch as its library describes them: `bytes` bytes follow, padded with zeros to a
 * multiple of 8. A line for each overload: the name without "aten::", a space, then a letter for
 * each argument: t a tensor, q one or None, l a list of tensors, k one or None, o anything else;
 * upper case where the operator may write to it. Written by gpuprof; never in a ring.
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
	GP_MEMORY_OOM = 8,    /* out of memory: bytes was asked for and not given */
};

/* c10::DeviceType's values for the ones we tell apart. */
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
	char comm[GP_COMM_BYTES]; /* as the target set it: not trusted, perhaps not terminated */
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

/* Text of a name that the kernel's programs find in the target's memory; longer ones are cut. */
#define GP_FOUND_NAME_BYTES	128
#define GP_FOUND_OVERLOAD_BYTES 64

/* Name ids from here on are those that the kernel's programs give out. */
#define GP_FOUND_NAMES 0x800000U

/* The operator or range that `name_id` stands for; before the first event that uses it. Both texts
 * are padded with zeros, at least one. */
struct gp_ev_found_name {
	struct gp_ev_head head;
	__u32 name_id;
	__u32 reserved;
	char name[GP_FOUND_NAME_BYTES];
	char overload[GP_FOUND_OVERLOAD_BYTES];
};

enum gp_sample_flags {
	GP_SAMPLE_RUNNING = 1,	       /* on a CPU; else it waited */
	GP_SAMPLE_KERNEL = 2,	       /* and there in the kernel */
	GP_SAMPLE_RUNNABLE = 4,	       /* it waited for a CPU alone */
	GP_SAMPLE_UNINTERRUPTIBLE = 8, /* it waited for a disk, a page, a driver */
	GP_SAMPLE_STOPPED = 16,	       /* by a signal or a debugger */
	GP_SAMPLE_MOVED = 32,	       /* it went on while its stack was read: it has none */
};

#define GP_SAMPLE_NO_SYSCALL 0xffffffffU

/*
 * A thread was found doing something, once, or, in one wait, several times. Samples stand for
 * weight_ns of the thread's time: an estimate.
 */
struct gp_ev_sample {
	struct gp_ev_head head; /* time_ns: of the last one */
	__u64 start_ns;		/* of the first one */
	__u64 weight_ns;
	__u32 nr;
	__u32 stack_id; /* 0: none */
	__u32 syscall;	/* the number of the system call that it was in; see `machine` */
	__u32 reserved;
};

/* Where samples are taken within the scheduler's tick: what is known of a CPU, which writes all but
 * the last. A cache line. */
struct gp_sampled_cpu {
	__u64 ticks;  /* that found a thread there, whosever */
	__u64 shared; /* of these, with another one that waited for the CPU */
	__u64 ours;   /* samples of threads that are sampled */
	/* When a timer of our own began to take the samples; 0: the tick does. */
	__u64 timer_turn;
	__u64 reserved[4];
};

/* One Python frame. `check` is a checksum of the code object as it was then: memory that has been
 * given to another code object since shows another one. */
struct gp_stack_frame {
	__u64 code;
	__s32 lasti; /* as the interpreter keeps it: see struct gp_python */
	__u32 check;
};

/* A stack that was not seen before; `frames_nr` frames follow, innermost first. head.flags are enum
 * gp_stack_flags. Ids count up from 1 over all processes of a capture. */
struct gp_ev_stack {
	struct gp_ev_head head;
	__u32 stack_id;
	__u32 frames_nr;
	/* Bits, by frame: it is the outermost of one call of the interpreter. */
	__u64 entries[GP_STACK_FRAMES / 64];
};

/* A stack came to code at `address` (of process head.process) for which there is no table yet. */
struct gp_ev_unwind {
	struct gp_ev_head head;
	__u64 address;
};

/*
 * A stack that was not seen before; the addresses of `frames_nr` instructions follow, innermost
 * first: the one that was next for the innermost frame, for those that a signal interrupted and for
 * the kernel's between those and the handler, and the last byte of the call for the others. Ids are
 * of the same kind as those of gp_ev_stack, and so are the flags. `python_id`: the Python stack
 * that the thread had at the same moment, 0: none or not asked for.
 */
struct gp_ev_native {
	struct gp_ev_head head;
	__u32 stack_id;
	__u32 python_id;
	__u32 frames_nr;
	/* The changes of what is mapped that the walk knew of: code that came later has other
	 * rules, and what lay at its addresses has gone. */
	__u32 maps_changes;
	/* So many addresses of the kernel's code follow those `frames_nr`, innermost first too: it
	 * was called by the innermost frame, or interrupted it. */
	__u32 kernel_nr;
	__u32 reserved;
	/* Bits, by frame: one of the interpreter's own frames lies in it, so it is a call of the
	 * interpreter. All zero: those have none (up to 3.11). */
	__u64 marks[GP_STACK_FRAMES / 64];
};

/* What went missing, and why. Each is a counter printed at the end of every run, zero too. */
enum gp_loss {
	GP_LOSS_RING_FULL = 0,	    /* events for which the kernel's ring had no room */
	GP_LOSS_DEPTH = 1,	    /* ops nested deeper, or more open at once, than is followed */
	GP_LOSS_THREAD = 2,	    /* hits on a thread for which no state could be made */
	GP_LOSS_OPEN_AT_START = 3,  /* exits of ops that were open when the capture began */
	GP_LOSS_OPEN_AT_END = 4,    /* ops still open when it ended */
	GP_LOSS_EXCEPTION = 5,	    /* ops ended by an exception: their end is a bound */
	GP_LOSS_FREE_UNKNOWN = 6,   /* frees of memory allocated before the capture */
	GP_LOSS_PROBE = 7,	    /* functions that could not be probed */
	GP_LOSS_RECORD = 8,	    /* events refused because a field was not believable */
	GP_LOSS_COLLECTOR_FULL = 9, /* events for which the collector's ring had no room */
	GP_LOSS_NAMES = 10,	    /* names that found no place (shown as "?") or were not read */
	GP_LOSS_COLLECTOR_LEFT =
		11, /* times a collector left by itself: what it missed is unknown */
	GP_LOSS_STACK_INCOMPLETE = 12, /* events whose stack is truncated or otherwise not whole */
	GP_LOSS_STACK_ROOM = 13,       /* events whose stack found no room, or could not be walked:
					* they have none */
	GP_LOSS_GPU_TIME = 14,	       /* CUPTI records with no start or end, or an end before it */
	GP_LOSS_GPU_CLOCK = 15,	       /* CUPTI records made while its clock was not steady */
	GP_LOSS_GPU_DROPPED = 16,   /* CUPTI records that CUPTI or we had no buffer for, at least */
	GP_LOSS_CHILD_LATE = 17,    /* children whose beginning was not seen */
	GP_LOSS_CHILD_MISSED = 18,  /* children that are not in the capture */
	GP_LOSS_BOXED_UNSEEN = 19,  /* operators called where no probe tells their end or name */
	GP_LOSS_SCRIPT_UNSEEN = 20, /* calls of TorchScript functions, which no probe tells */
	GP_LOSS_API_END = 21,	    /* calls of the CUDA API of which only the begin was seen */
	GP_LOSS_UNWIND_TABLE = 22,  /* native stacks cut at code whose table was not there yet, or
				     * walked while what is mapped changed */
	GP_LOSS_UNWIND_RULE = 23,   /* native stacks cut at code that has no unwind information */
	GP_LOSS_UNWIND_HARD = 24,   /* native stacks cut where a rule is not one of ours */
	GP_LOSS_UNWIND_MEMORY = 25, /* native stacks cut where the thread's stack made no sense */
	GP_LOSS_UNWRITTEN = 26,	    /* events that no recording could be written of */
	GP_LOSS_MODULES = 27,	    /* ops of which it is not known which modules called them */
	GP_LOSS_SAMPLE_MISSED = 28, /* samples that were due and not taken: late timers */
	GP_LOSS_SAMPLE_MOVED = 29,  /* waits whose thread went on while its stack was read */
	GP_LOSS_KERNEL_STACK = 30,  /* samples in the kernel whose stack there was not to be had */
	GP_LOSS_LINES = 31,	    /* native frames whose lines were not looked up */
	GP_LOSS_NR = 32,
};

/* Ops open on one thread at a time. */
#define GP_OP_DEPTH 96

/* Processes of a capture at a time: events call them by numbers below this. A power of two. */
#define GP_PROCESSES_MAX 1024

#include "wire_gpu.h"
#include "wire_ring.h"

#endif /* GP_BPF_WIRE_H */
