/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Every map and every global of the BPF programs. They are weak so that each program file can
 * include this header: the linker merges them.
 */
#ifndef GP_BPF_MAPS_BPF_H
#define GP_BPF_MAPS_BPF_H

#include "wire.h"

#include <bpf/bpf_helpers.h>

#define GP_NODE_TABLES_MAX 16384
/* Used where the kernel has no task storage for uprobes. */
#define GP_THREADS_MAX 8192
#define GP_STACKS_MAX  65536
#define GP_NAMES_MAX   16384

/* A power of two. */
#define GP_FOUND_IN_NR	256
#define GP_QUICK_STACKS 65536
/* How much of a waiting thread's stack is read at once: each read is expensive. */
#define GP_WALK_WINDOW 16384
/* How far the stack is searched for a caller, and how large its frame may be. */
#define GP_SEARCH_WORDS 256
#define GP_SEARCH_FRAME 0x100000ULL

/* One open op. */
struct thread_frame {
	__u64 sp; /* at function entry: the address of the return address */
	__u64 start_ns;
	__u32 tag;     /* what the exit's cookie must contain */
	__u32 name_id; /* 0: no name (an autograd node of an unknown class) */
	__u32 op;      /* low half of its instance */
	__u32 stack_id;
};

/* One open call of the CUDA API: what is emitted when it ends. */
struct api_frame {
	__u64 sp;      /* as in thread_frame */
	__u64 address; /* memory calls: what is freed, or where the address will be written */
	/* where the bytes of a row will be written (0: nowhere), or a kernel's name or handle */
	__u64 second;
	__u32 tag;
	__u8 silent; /* part of another call: not emitted */
	__u8 in_memory_call;
	__u16 reserved;
	struct gp_ev_api_call call;
	struct gp_ev_collective collective; /* for NCCL's calls */
};

/*
 * A thread's open ops, which only that thread touches. The stack grows down, so a frame whose sp is
 * not above the current one has been left; an exception leaves frames without passing an exit.
 */
struct thread_state {
	__u64 owner;   /* epoch << 16 | process: with any other value the rest is void */
	__u64 over_sp; /* highest sp of the ops that were too deep for a frame; 0: none */
	__u64 nvtx_sp; /* at the last NVTX call, until a tool was seen in it; 0: none */
	__u32 number;  /* high half of the instances */
	__u32 tid;
	__u32 next_op;
	__u32 depth;
	__u32 emitted;
	/* For record_function(), see dispatch.bpf.c: ranges that were too deep for a frame, and the
	 * last op that begins one (0: none). */
	__u32 ranges_over;
	__u32 range_op;
	__u32 api_depth;
	__u64 api_over_sp; /* as over_sp, of API calls */
	__u64 gc_start_ns; /* begin of the running garbage collection; 0: none */
	__s32 gc_generation;
	__u32 reserved;
	struct thread_frame frames[GP_OP_DEPTH];
	struct api_frame apis[GP_API_DEPTH];
	struct gp_ev_found_name found; /* the name being read */
};

/* The innermost Python frame when an op began (0: unreliable), its position in the code, and the
 * stack's id. */
struct python_top {
	__u64 frame;
	__u64 instr;
	__u32 id;
	__u32 op; /* the op's, see struct thread_frame */
};

/* A search for a thread's Python thread state. */
struct python_search {
	__u64 self;   /* the thread pointer */
	__u64 interp; /* the interpreter to search next */
	__u64 tstate; /* the thread state to check next; 0: the next interpreter's first */
	__u64 found;  /* the thread's state that has frames, else one without */
	__u32 found_nr;
	__u32 framed_nr; /* the thread's states that have frames */
	__u64 whole;	 /* all lists were read to their ends */
};

/*
 * Two windows on the process's Python frames: where they begin, and one more than the last offset
 * at which a whole frame fits; 0: the window is empty. Separate from python_thread, because both
 * together are too large for one element, see GP_ELEMENT_BYTES_MAX.
 */
struct python_windows {
	__u64 window, other;
	__u64 window_last, other_last;
	/* The windows, one behind the other, and room for a frame at the very end. */
	__u64 read[(GP_PYTHON_WINDOW_BYTES + GP_PYTHON_BEHIND_BYTES + GP_PYTHON_FRAME_BYTES + 8) /
		   8];
};

/* A thread's memory for walking its Python stack. Everything that changes from frame to frame is
 * here, where the verifier does not track it, so that its analysis ends. */
struct python_thread {
	struct python_top tops[GP_OP_DEPTH]; /* for the open ops, and for the next one */
	__u64 tstate;			     /* the thread state found last; 0: none */
	__u64 single; /* the interpreter when it was the only one; 0: there were several */
	/* The walk: the next frame, and the hash so far. */
	__u64 frame, hash;
	__u32 nr, flags;
	__u64 first_instr; /* of the innermost frame, once it was read */
	__u32 has_first, reserved;
	__u64 base_mask;  /* ~0: instructions are addresses */
	__u64 owner_mask; /* 0: frames have no owner field */
	__u64 state[GP_PYTHON_STATE_BYTES / 8];
	__u64 check[GP_PYTHON_CHECK_BYTES / 8];
	struct gp_python_made made;
	/* The walk for interpreter calls: function frames so far, and the next frame. */
	__u64 call_nr;
	__u64 call_frame;
	__u64 call[GP_PYTHON_FRAME_BYTES / 8];
	struct python_search search;
	struct gp_ev_stack event; /* followed by `frames`, in the ring too */
	struct gp_stack_frame frames[GP_STACK_FRAMES];
};

/* A walk of a native stack. */
struct unwind_walk {
	__u64 ip; /* of the frame */
	__u64 sp; /* before the frame's next instruction, like bp */
	__u64 bp;
	__u64 hash;
	__u64 rule;		      /* of the frame */
	struct gp_unwind_range range; /* of the last frame; all zero: none */
	__u64 owner;		      /* as in thread_state */
	__u32 process;
	__u32 maps_known; /* mapping changes that the process's ranges are from */
	__u32 nr;
	__u32 flags;  /* enum gp_stack_flags */
	__u32 called; /* 1: ip is a return address, so the call is right below it; else 0 */
	__u32 bp_lost;
	__u32 searched; /* a caller was searched for: done once only */
	__u32 anchor;	/* index of the next anchor */
};

/* A thread's memory for its native stack. As in python_thread, everything that changes during a
 * walk is here. */
struct native_thread {
	struct unwind_walk walk;
	/* The interpreter's entry frames found so far, innermost first: since 3.12 each interpreter
	 * call has one on the thread's stack. */
	__u64 anchors[GP_STACK_FRAMES];
	__u64 anchors_nr;
	struct gp_ev_native event; /* followed by `frames`, in the ring too */
	__u64 frames[GP_STACK_FRAMES + GP_KERNEL_FRAMES];
	__u64 words[GP_SEARCH_WORDS]; /* the part of the thread's stack that is searched for a
					 caller */
};

/* Rules that samples have looked up, for an address in a process as long as its mappings do not
 * change. Samples are so rare that the unwind tables have left the CPU's caches, and most frames
 * recur. */
#define GP_RULES_KNOWN 1024 /* a power of two */

struct rule_known {
	__u64 owner; /* as in thread_state */
	__u64 address;
	__u64 rule;
	__u32 maps_changes; /* the process's count at that time */
	__u32 reserved;
};

/* The memory in which a sample's stack is built. */
struct sample_walk {
	__u64 tick_ns;	 /* the CPU's last tick; 0: none since the begin */
	__u64 tick_task; /* the thread that ran then, and its number of switches */
	__u64 tick_switches;
	/* For our own timer: its turn, its last tick or begin, and its period; 0: none yet. */
	__u64 timer_turn;
	__u64 timer_ns;
	__u64 period_ns;
	struct thread_state thread; /* holds the sample's owner */
	struct python_thread python;
	struct python_windows windows;
	struct native_thread native;
	/* The kernel's frames, innermost first; from kernel_at on, those interrupted. */
	__u64 kernel[GP_INTERRUPT_FRAMES + GP_KERNEL_FRAMES];
	__u64 kernel_hash; /* of these frames */
	__u32 kernel_at, kernel_nr;
	/* A window of a waiting thread's memory, from window_at on. */
	__u64 window_at;
	__u64 window_bytes;
	__u8 window[GP_WALK_WINDOW];
	struct rule_known rules[GP_RULES_KNOWN];
};

/* One sampled thread. */
struct sampled_thread {
	__u64 owner; /* as in thread_state */
	/* As in python_thread. */
	__u64 tstate;
	__u64 single;
	__u64 switches;		  /* of the thread before its last wait */
	__u32 looks;		  /* visits during that wait */
	__u32 again;		  /* its stack was incomplete */
	struct gp_ev_sample wait; /* what to emit of it; nr 0: nothing */
};

/*
 * The largest element of a task storage. Linux 6.19 allocates elements with kmalloc_nolock()
 * (commit f484f4a3e058), two pages at most, and 7.2 reserves 72 bytes of them. A map with larger
 * elements can be created, but no thread ever gets one.
 */
#define GP_ELEMENT_BYTES_MAX (8192 - 256)

_Static_assert(sizeof(struct thread_state) <= GP_ELEMENT_BYTES_MAX, "fits a task storage");
_Static_assert(sizeof(struct python_thread) <= GP_ELEMENT_BYTES_MAX, "fits a task storage");
_Static_assert(sizeof(struct python_windows) <= GP_ELEMENT_BYTES_MAX, "fits a task storage");
_Static_assert(sizeof(struct native_thread) <= GP_ELEMENT_BYTES_MAX, "fits a task storage");
_Static_assert(sizeof(struct sampled_thread) <= GP_ELEMENT_BYTES_MAX, "fits a task storage");

/* Per CPU. `opened` - `closed` ops are open. */
struct counters {
	__u64 losses[GP_LOSS_NR];
	__u64 opened;
	__u64 closed;
	__u64 other_hits;   /* of programs that neither open nor close an op */
	__u64 stepped_hits; /* hits, of all, on single-stepped instructions */
	__u64 sampling_ns;  /* time of the programs that sample running threads */
};

/* 0: nothing is recorded. Each start has a new value. */
__u32 gp_epoch __weak;

/* One bit per process index: CUPTI reports its CUDA calls, so the probes ignore them. */
__u64 gp_api_off[1024] __weak;
/* Likewise: its first probes are being attached, and nothing is recorded until all are. */
__u64 gp_placing[1024] __weak;

/* 1: emit memory calls even so: only probes see them. */
const volatile __u32 gp_cuda_memory __weak = 0;
/* 1: ranges are not emitted. */
const volatile __u32 gp_ops_alone __weak = 0;
/* 1: only operators whose names match are emitted. */
const volatile __u32 gp_ops_chosen __weak = 0;
const volatile __u64 gp_glob_sets[GP_GLOB_SETS * 4] __weak = {};
const volatile __u16 gp_glob_tokens[GP_GLOB_TOKENS] __weak = {};
/* The number of the newest thread. */
__u32 gp_threads_nr __weak;
/* Set before loading: whether uprobe programs may use task storage. */
const volatile __u32 gp_task_storage __weak = 1;
/* Whether to stop the first process after exec and when its loader has mapped something. */
const volatile __u32 gp_stop_at_load __weak = 0;
/* What stacks ops and allocations carry: enum gp_stack_want. */
const volatile __u32 gp_stacks __weak = 0;
/* How many stacks have an id. */
__u32 gp_stacks_nr __weak;
/* By process: the address of its collector's table of struct gp_stack_top; 0: none. */
__u64 gp_stack_tops[GP_PROCESSES_MAX] __weak;
/* By process: counts what its loader changes in the mappings, before and after each change. */
__u32 gp_maps_changes[GP_PROCESSES_MAX] __weak;
/* By process: counts up before the loader adds something, and after it has removed something; both
 * where it is not known which. */
__u32 gp_maps_adds[GP_PROCESSES_MAX] __weak;
__u32 gp_maps_removals[GP_PROCESSES_MAX] __weak;
/* By process: the address of its loader's state (r_debug.r_state), 0: unknown; and the last state.
 */
__u64 gp_loader_state[GP_PROCESSES_MAX] __weak;
__u32 gp_loader_did[GP_PROCESSES_MAX] __weak;
/* How many names of operators and ranges have an id. */
__u32 gp_found_names_nr __weak;
/* The register that held the operator last time, by a part of the probe's address. */
__u8 gp_found_in[GP_FOUND_IN_NR] __weak;
/* How full the ring must be to wake the reader. */
const volatile __u64 gp_wakeup_bytes __weak = 65536;

/* Whether programs can find a thread by its number (bpf_task_from_pid(), since Linux 6.2). */
const volatile __u32 gp_task_by_pid __weak = 1;

/* Sampling: the number of CPUs, and the time between two scheduler ticks. */
const volatile __u32 gp_cpus_nr __weak = 0;
const volatile __u64 gp_tick_ns __weak = 0;
/* The address and the largest size of the code through which the tick's interrupt enters the
 * kernel. */
const volatile __u64 gp_tick_code __weak = 0;
/* The address of the tick's kernel function. */
const volatile __u64 gp_tick_function __weak = 0;
/* Before sampling: ticks whose own frames were recognised, and their frames. */
__u32 gp_ticks_seen __weak;
__u64 gp_tick_stack[GP_INTERRUPT_FRAMES] __weak;
#define GP_TICK_CODE_BYTES 64
/* The current time between two samples of each CPU. */
__u64 gp_sample_ns __weak;
/* The time that one visit to the waiting threads stands for; and whether it emits what was seen so
 * far. */
__u64 gp_look_ns __weak;
__u32 gp_look_emits __weak;

/* max_entries is set before loading. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} ring __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread_state);
} threads __weak SEC(".maps");

/* By tid, where `threads` is not available. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, GP_THREADS_MAX);
	__type(key, __u32);
	__type(value, struct thread_state);
} threads_by_tid __weak SEC(".maps");

/* The initial value of a threads_by_tid entry, too large for the BPF stack. Never written. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct thread_state);
} no_thread __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct counters);
} counters __weak SEC(".maps");

/* The virtual table of a class of autograd nodes. */
struct node_table {
	__u64 address;
	__u64 process;
};

/* -> name id. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, GP_NODE_TABLES_MAX);
	__type(key, struct node_table);
	__type(value, __u32);
} node_names __weak SEC(".maps");

/* A name in a process: a hash of its text. */
struct found_key {
	__u64 hash;
	__u64 process;
};

/* -> name id. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, GP_NAMES_MAX);
	__type(key, struct found_key);
	__type(value, __u32);
} found_names __weak SEC(".maps");

/* tgid -> index of the process in this capture. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, GP_PROCESSES_MAX);
	__type(key, __u32);
	__type(value, __u32);
} processes __weak SEC(".maps");

/* The layout of CPython's structures, by process index; all zero: unknown. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, GP_PROCESSES_MAX);
	__type(key, __u32);
	__type(value, struct gp_python);
} pythons __weak SEC(".maps");

/* Hash of a process's stack -> its id. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, GP_STACKS_MAX);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u64);
	__type(value, __u32);
} stacks __weak SEC(".maps");

/* The low 16 bits of a hash of a stack's frames and its process's generation -> the hash's high
 * bits and, in the low bits, the id. One word, so that it is never half written. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, GP_QUICK_STACKS);
	__type(key, __u32);
	__type(value, __u64);
} quick_stacks __weak SEC(".maps");

/* As `threads`, `threads_by_tid` and `no_thread`. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct python_thread);
} python_threads __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, GP_THREADS_MAX);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, struct python_thread);
} python_threads_by_tid __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct python_thread);
} no_python_thread __weak SEC(".maps");

/* As `threads`, `threads_by_tid` and `no_thread`. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct python_windows);
} python_windows __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, GP_THREADS_MAX);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, struct python_windows);
} python_windows_by_tid __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct python_windows);
} no_python_windows __weak SEC(".maps");

/* As `threads`, `threads_by_tid` and `no_thread`. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct native_thread);
} native_threads __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, GP_THREADS_MAX);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, struct native_thread);
} native_threads_by_tid __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct native_thread);
} no_native_thread __weak SEC(".maps");

/* By CPU, then one for the visitor of waiting threads: max_entries is set before loading. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sample_walk);
} sample_walks __weak SEC(".maps");

/* By CPU, where samples are taken within the tick. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct gp_sampled_cpu);
} sampled_cpus __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct sampled_thread);
} sampled_threads __weak SEC(".maps");

/* Where a process has code mapped, by its index: see struct gp_unwind_range. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, GP_PROCESSES_MAX);
	__type(key, __u32);
	__array(
		values, struct {
			__uint(type, BPF_MAP_TYPE_ARRAY);
			__uint(map_flags, BPF_F_INNER_MAP);
			__uint(max_entries, 1);
			__uint(key_size, sizeof(__u32));
			__uint(value_size, sizeof(struct gp_unwind_range));
		});
} unwind_ranges __weak SEC(".maps");

/* Unwind tables: words as wire.h has them. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, GP_UNWIND_TABLES_MAX);
	__type(key, __u32);
	__array(
		values, struct {
			__uint(type, BPF_MAP_TYPE_ARRAY);
			__uint(map_flags, BPF_F_INNER_MAP | BPF_F_MMAPABLE);
			__uint(max_entries, 1);
			__uint(key_size, sizeof(__u32));
			__uint(value_size, sizeof(__u64));
		});
} unwind_tables __weak SEC(".maps");

/* Returns the current thread's element of a task storage, or of its replacement, initialised from
 * `nothing`. NULL: no room. */
static __always_inline void *thread_memory(void *storage, void *by_tid, void *nothing)
{
	__u32 zero = 0, tid;
	void *memory, *empty;

	if (gp_task_storage)
		return bpf_task_storage_get(storage, bpf_get_current_task_btf(), 0,
					    BPF_LOCAL_STORAGE_GET_F_CREATE);
	tid = (__u32)bpf_get_current_pid_tgid();
	memory = bpf_map_lookup_elem(by_tid, &tid);
	if (memory)
		return memory;
	empty = bpf_map_lookup_elem(nothing, &zero);
	if (!empty)
		return 0;
	(void)bpf_map_update_elem(by_tid, &tid, empty, BPF_NOEXIST);
	return bpf_map_lookup_elem(by_tid, &tid);
}

/* Returns `n`, at most `most`, in one register whose bound the verifier sees wherever it is used.
 */
static __always_inline __u64 bounded(__u64 n, __u64 most)
{
	barrier_var(n);
	if (n > most)
		n = most;
	barrier_var(n);
	return n;
}

/* Returns open op number `i`, from 0, or NULL. The only way to an open op: the verifier must see
 * the bound of the very register from which the address is made, so the index is hidden from the
 * compiler and as wide as an address. */
static __always_inline struct thread_frame *thread_frame(const struct thread_state *t, __u64 i)
{
	barrier_var(i);
	if (i >= GP_OP_DEPTH)
		return 0;
	return (struct thread_frame *)&t->frames[i];
}

/* The innermost open op, or NULL. */
static __always_inline struct thread_frame *thread_top(const struct thread_state *t)
{
	return thread_frame(t, (__u64)t->depth - 1);
}

#endif /* GP_BPF_MAPS_BPF_H */
