/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Every map and every global of the kernel programs. They are weak so that each program file can
 * include this one: the linker makes them one.
 */
#ifndef GP_BPF_MAPS_BPF_H
#define GP_BPF_MAPS_BPF_H

#include "wire.h"

#include <bpf/bpf_helpers.h>

#define GP_NODE_TABLES_MAX 16384
/* Where the kernel has no task storage for uprobes. */
#define GP_THREADS_MAX 8192
#define GP_STACKS_MAX  65536
#define GP_NAMES_MAX   16384

/* A power of two. */
#define GP_FOUND_IN_NR	256
#define GP_QUICK_STACKS 65536
/* Of the stack of a thread that waits so much is read at once: each time costs. */
#define GP_WALK_WINDOW 16384
/* How far a caller is searched for on the stack, and how large its frame may be. */
#define GP_SEARCH_WORDS 256
#define GP_SEARCH_FRAME 0x100000ULL

/* One open op. */
struct thread_frame {
	__u64 sp; /* at function entry: the address of the return address */
	__u64 start_ns;
	__u32 tag;     /* what the exit's cookie must say */
	__u32 name_id; /* 0: has no name (an autograd node of an unknown class) */
	__u32 op;      /* low half of the instance */
	__u32 stack_id;
};

/* One open call of the CUDA API: what will be told of it when it ends. */
struct api_frame {
	__u64 sp;      /* as in thread_frame */
	__u64 address; /* of memory: what is freed, or where its address will be written */
	/* Where the bytes of a row will be written (0: nowhere), or a kernel's name or handle. */
	__u64 second;
	__u32 tag;
	__u8 silent; /* part of another call: nothing is told */
	__u8 in_memory_call;
	__u16 reserved;
	struct gp_ev_api_call call;
	struct gp_ev_collective collective; /* instead, of NCCL's calls */
};

/*
 * Of each thread: its open ops. Only that thread touches it. The stack grows down, so a frame whose
 * sp is not above the current one has been left; an exception does that without passing an exit.
 */
struct thread_state {
	__u64 owner;   /* epoch << 16 | process: anything else makes the rest void */
	__u64 over_sp; /* highest sp of the ops that were too deep to be kept, 0: none */
	__u64 nvtx_sp; /* at the last call of NVTX, until a tool was seen in it; 0: none */
	__u32 number;  /* high half of the instances */
	__u32 tid;
	__u32 next_op;
	__u32 depth;
	__u32 emitted;
	/* Of record_function(), see dispatch.bpf.c: ranges that were too deep to be kept, and the
	 * last op that begins one (0: none). */
	__u32 ranges_over;
	__u32 range_op;
	__u32 api_depth;
	__u64 api_over_sp; /* as over_sp, of API calls */
	__u64 gc_start_ns; /* of Python's collection that runs, 0: none */
	__s32 gc_generation;
	__u32 reserved;
	struct thread_frame frames[GP_OP_DEPTH];
	struct api_frame apis[GP_API_DEPTH];
	struct gp_ev_found_name found; /* the name at hand */
};

/* The innermost Python frame when an op began, 0: not to be relied on; where it was in its code;
 * and the stack's id. */
struct python_top {
	__u64 frame;
	__u64 instr;
	__u32 id;
	__u32 op; /* the op's, see struct thread_frame */
};

/* Looking for a thread's Python thread state. */
struct python_search {
	__u64 self;   /* the thread pointer */
	__u64 interp; /* next to look at */
	__u64 tstate; /* next to look at, 0: the next interpreter's */
	__u64 found;  /* the thread's, with frames; or without, if there is no other */
	__u32 found_nr;
	__u32 framed_nr; /* of them, those with frames */
	__u64 whole;	 /* all lists were seen to their ends */
};

/*
 * Two windows on the target's Python frames: where they begin, and one more than the offset at
 * which a frame may begin for all of it to be there; 0: the window is empty. A part of
 * python_thread: the two together are too large for one element, see GP_ELEMENT_BYTES_MAX.
 */
struct python_windows {
	__u64 window, other;
	__u64 window_last, other_last;
	/* One behind the other; and for a frame at the very end. */
	__u64 read[(GP_PYTHON_WINDOW_BYTES + GP_PYTHON_BEHIND_BYTES + GP_PYTHON_FRAME_BYTES + 8) /
		   8];
};

/* Of each thread, where stacks are wanted: the memory in which its stack is walked. All of it that
 * changes from frame to frame is here: what the verifier cannot follow it need not, and so it comes
 * to an end. */
struct python_thread {
	struct python_top tops[GP_OP_DEPTH]; /* of the open ops, and of the one to be next */
	__u64 tstate;			     /* the thread state that was found last, 0: none */
	__u64 single; /* the interpreter that was then the only one, 0: there were several */
	/* The walk: the next frame; what has been found. */
	__u64 frame, hash;
	__u32 nr, flags;
	__u64 first_instr; /* of the innermost frame, once it was read */
	__u32 has_first, reserved;
	__u64 base_mask;  /* ~0: instructions are addresses */
	__u64 owner_mask; /* 0: frames have no owner */
	__u64 state[GP_PYTHON_STATE_BYTES / 8];
	__u64 check[GP_PYTHON_CHECK_BYTES / 8];
	struct gp_python_made made;
	/* The walk for the interpreter's calls: functions' frames so far, and the next frame. */
	__u64 call_nr;
	__u64 call_frame;
	__u64 call[GP_PYTHON_FRAME_BYTES / 8];
	struct python_search search;
	struct gp_ev_stack event; /* `frames` follow it, in the ring too */
	struct gp_stack_frame frames[GP_STACK_FRAMES];
};

/* A walk of a native stack. */
struct unwind_walk {
	__u64 ip; /* of the frame */
	__u64 sp; /* before the frame's next instruction, and so is bp */
	__u64 bp;
	__u64 hash;
	__u64 rule;		      /* the frame's */
	struct gp_unwind_range range; /* of the last frame; all zero: none */
	__u64 owner;		      /* as in thread_state */
	__u32 process;
	__u32 maps_known; /* which change of what is mapped the process's ranges are of */
	__u32 nr;
	__u32 flags;  /* enum gp_stack_flags */
	__u32 called; /* 1: ip is a return address, the call is right below it; or 0 */
	__u32 bp_lost;
	__u32 searched; /* a caller has been searched for: once is enough */
	__u32 anchor;	/* number of the next one */
};

/* Of each thread, where native stacks are wanted: where its stack is put together. As in
 * python_thread, all that changes in a walk is here. */
struct native_thread {
	struct unwind_walk walk;
	/* The interpreter's own Python frames, as far as that walk came, innermost first: from 3.12
	 * on each of its calls has one on the thread's stack. */
	__u64 anchors[GP_STACK_FRAMES];
	__u64 anchors_nr;
	struct gp_ev_native event; /* `frames` follow it, in the ring too */
	__u64 frames[GP_STACK_FRAMES + GP_KERNEL_FRAMES];
	__u64 words[GP_SEARCH_WORDS]; /* of the thread's stack, where a caller is searched for */
};

/* Samples come so seldom that the unwind tables have left the caches by then, and most frames are
 * those of the last ones. A rule as it was looked up: of an address in a process, as long as
 * nothing else is mapped there. */
#define GP_RULES_KNOWN 1024 /* a power of two */

struct rule_known {
	__u64 owner; /* as in thread_state */
	__u64 address;
	__u64 rule;
	__u32 maps_changes; /* of the process then */
	__u32 reserved;
};

/* Where a sample's stack is put together. */
struct sample_walk {
	__u64 tick_ns;	 /* the CPU's last tick, 0: none since it began */
	__u64 tick_task; /* what ran there then, and how often it had been switched to */
	__u64 tick_switches;
	/* Of a timer of our own: its turn, its last tick or where that began, and the period then;
	 * 0: none yet. */
	__u64 timer_turn;
	__u64 timer_ns;
	__u64 period_ns;
	struct thread_state thread; /* says whose the sample is */
	struct python_thread python;
	struct python_windows windows;
	struct native_thread native;
	/* The kernel's frames, innermost first; behind kernel_at, those of an interrupt before. */
	__u64 kernel[GP_INTERRUPT_FRAMES + GP_KERNEL_FRAMES];
	__u64 kernel_hash; /* of them */
	__u32 kernel_at, kernel_nr;
	/* Of a waiting thread's memory so many bytes from window_at on. */
	__u64 window_at;
	__u64 window_bytes;
	__u8 window[GP_WALK_WINDOW];
	struct rule_known rules[GP_RULES_KNOWN];
};

/* Of each thread that is sampled. */
struct sampled_thread {
	__u64 owner; /* as in thread_state */
	/* As in python_thread. */
	__u64 tstate;
	__u64 single;
	__u64 switches;		  /* of the thread until its last wait */
	__u32 looks;		  /* in that wait */
	__u32 again;		  /* its stack was not whole */
	struct gp_ev_sample wait; /* what is to be told of it; nr 0: nothing */
};

/*
 * The largest element of a task storage. Linux 6.19 allocates elements by kmalloc_nolock() (commit
 * f484f4a3e058), which has two pages at most, and 7.2 keeps 72 bytes of them to itself. The map of
 * larger elements can be made, but no thread ever gets one.
 */
#define GP_ELEMENT_BYTES_MAX (8192 - 256)

_Static_assert(sizeof(struct thread_state) <= GP_ELEMENT_BYTES_MAX, "fits a task storage");
_Static_assert(sizeof(struct python_thread) <= GP_ELEMENT_BYTES_MAX, "fits a task storage");
_Static_assert(sizeof(struct python_windows) <= GP_ELEMENT_BYTES_MAX, "fits a task storage");
_Static_assert(sizeof(struct native_thread) <= GP_ELEMENT_BYTES_MAX, "fits a task storage");
_Static_assert(sizeof(struct sampled_thread) <= GP_ELEMENT_BYTES_MAX, "fits a task storage");

/* Per CPU. `opened` less `closed` is what is open. */
struct counters {
	__u64 losses[GP_LOSS_NR];
	__u64 opened;
	__u64 closed;
	__u64 other_hits;   /* of programs that neither open nor close an op */
	__u64 stepped_hits; /* of all, those on instructions that are single-stepped */
	__u64 sampling_ns;  /* in programs that interrupt threads to sample them */
};

/* 0 when nothing is to be recorded. Counts up at each start. */
__u32 gp_epoch __weak;

/* A bit for each number of 16 bits that a process may have: CUPTI tells of its CUDA calls, and
 * probes are to be silent. */
__u64 gp_api_off[1024] __weak;
/* Likewise: its first probes are being placed, and nothing is recorded until all of them are. */
__u64 gp_placing[1024] __weak;

/* But for calls that give memory, which only probes tell of. */
const volatile __u32 gp_cuda_memory __weak = 0;
/* Ranges are not told. */
const volatile __u32 gp_ops_alone __weak = 0;
/* Only some operators are wanted, those whose names fit. */
const volatile __u32 gp_ops_chosen __weak = 0;
const volatile __u64 gp_glob_sets[GP_GLOB_SETS * 4] __weak = {};
const volatile __u16 gp_glob_tokens[GP_GLOB_TOKENS] __weak = {};
/* Number of the thread seen last. */
__u32 gp_threads_nr __weak;
/* Set before loading: whether uprobe programs may use task storage. */
const volatile __u32 gp_task_storage __weak = 1;
/* Whether to stop the first process when its loader has mapped something, and after exec. */
const volatile __u32 gp_stop_at_load __weak = 0;
/* What stacks ops and allocations carry: enum gp_stack_want. */
const volatile __u32 gp_stacks __weak = 0;
/* Stacks that have an id. */
__u32 gp_stacks_nr __weak;
/* By process: where its collector's table of struct gp_stack_top lies, 0: there is none. */
__u64 gp_stack_tops[GP_PROCESSES_MAX] __weak;
/* By process: counts up with each change of what its loader has mapped, before and after. */
__u32 gp_maps_changes[GP_PROCESSES_MAX] __weak;
/* By process: counts up before the loader adds something, and after it has removed something; both
 * where it cannot be seen which. */
__u32 gp_maps_adds[GP_PROCESSES_MAX] __weak;
__u32 gp_maps_removals[GP_PROCESSES_MAX] __weak;
/* By process: where its loader says what it is doing (r_debug.r_state), 0: not known; and what it
 * said last. */
__u64 gp_loader_state[GP_PROCESSES_MAX] __weak;
__u32 gp_loader_did[GP_PROCESSES_MAX] __weak;
/* Names of operators and ranges that were given an id. */
__u32 gp_found_names_nr __weak;
/* In which register the operator was found last, by a part of the probe's address. */
__u8 gp_found_in[GP_FOUND_IN_NR] __weak;
/* How full the ring must be for the reader to be woken. */
const volatile __u64 gp_wakeup_bytes __weak = 65536;

/* Whether the kernel finds a thread by its number for a program (bpf_task_from_pid(), since Linux
 * 6.2). */
const volatile __u32 gp_task_by_pid __weak = 1;

/* Sampling: CPUs, and time between two ticks that each of them has anyway. */
const volatile __u32 gp_cpus_nr __weak = 0;
const volatile __u64 gp_tick_ns __weak = 0;
/* Where the code lies by which the tick's interrupt comes into the kernel, and how much of it there
 * may be. */
const volatile __u64 gp_tick_code __weak = 0;
/* The kernel's function that is the tick. */
const volatile __u64 gp_tick_function __weak = 0;
/* Before anything is sampled: ticks whose frames are told apart from those of what they found, and
 * frames. */
__u32 gp_ticks_seen __weak;
__u64 gp_tick_stack[GP_INTERRUPT_FRAMES] __weak;
#define GP_TICK_CODE_BYTES 64
/* Time between two samples of each CPU, from now on. */
__u64 gp_sample_ns __weak;
/* What one look at the threads stands for; whether it is to tell of what has been seen so far. */
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

/* Instead of `threads` where that cannot be had: by tid. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, GP_THREADS_MAX);
	__type(key, __u32);
	__type(value, struct thread_state);
} threads_by_tid __weak SEC(".maps");

/* What a new entry of threads_by_tid holds: too large for the BPF stack. Never written. */
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

/* Where a class of autograd nodes has its virtual table. */
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

/* Where CPython's structures have their fields, by index of the process; all zero: not known. */
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
 * bits, and in the low ones the id. In one word, so that it is always whole. */
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

/* By CPU, and behind those that of the one who looks at waiting threads: max_entries is set before
 * loading. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sample_walk);
} sample_walks __weak SEC(".maps");

/* Where samples are taken within the tick: of each CPU. */
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

/* Where code lies in a process, by its index: see struct gp_unwind_range. */
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

/* The current thread's element of a task storage, or of what stands in for it: made of `nothing` if
 * there is none yet. NULL: no room. */
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

/* `n`, and no more than `most`: in one register, of which the verifier sees the bound wherever it
 * is used afterwards. */
static __always_inline __u64 bounded(__u64 n, __u64 most)
{
	barrier_var(n);
	if (n > most)
		n = most;
	barrier_var(n);
	return n;
}

/* The open op number `i`, from 0 on, or NULL. The one way to an open op: the verifier must see the
 * bound of the very register that the address is made from, so the compiler may know nothing of the
 * index, and it is as wide as an address. */
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
