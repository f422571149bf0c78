/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The part of wire.h that describes a process to the stack walks: its CPython and its code. gpuprof
 * fills it in.
 */
#ifndef GP_BPF_WALKS_H
#define GP_BPF_WALKS_H

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif

/* ---- stacks ---- */

/* The stacks that are wanted, as bits. */
enum gp_stack_want { GP_STACK_WANT_PYTHON = 1, GP_STACK_WANT_NATIVE = 2 };

enum gp_stack_flags {
	GP_STACK_TRUNCATED = 1,	 /* deeper than GP_STACK_FRAMES: the outermost frames are missing */
	GP_STACK_INCOMPLETE = 2, /* the walk did not reach its end, or a frame has no name */
	/* Complete, but a caller of code without unwind information was found by searching the
	 * stack. */
	GP_STACK_SEARCHED = 4,
};

/* The BPF programs add this to a stack_id that the process's collector gave. */
#define GP_STACK_EMITTED 0x80000000U

/* The most frames of one stack; and of the kernel's part in samples, where the kernel gives no more
 * than 127. */
#define GP_STACK_FRAMES	 256
#define GP_KERNEL_FRAMES 128

/* The most kernel frames of an interrupt that samples, enough to reach the interrupted one. */
#define GP_INTERRUPT_FRAMES 16

/* ---- Python ---- */

/* Bytes of a thread state and of a frame that contain everything that the walk needs, and of a code
 * object those that are checksummed. */
#define GP_PYTHON_STATE_BYTES 192
#define GP_PYTHON_FRAME_BYTES 128
#define GP_PYTHON_CHECK_BYTES 88
/* Neighbouring frames are read together up to the page boundary: the process has mapped all of a
 * page or none. */
#define GP_PYTHON_PAGE_BYTES   4096
#define GP_PYTHON_WINDOW_BYTES (GP_PYTHON_PAGE_BYTES + GP_PYTHON_FRAME_BYTES)
/* The most bytes read together with a frame elsewhere: some C frames. */
#define GP_PYTHON_BEHIND_BYTES 2048

/* As frame_owner: there is no such field. Frames with this owner or a larger one are the
 * interpreter's own, not a Python function's. */
#define GP_PYTHON_NO_FIELD	    0xffff
#define GP_PYTHON_OWNER_INTERPRETER 3

/* Where one process's CPython keeps its data: found by gpuprof, used by both walks. Offsets are
 * from the beginning of the structure, those of a frame from `frame_at`. A thread state begins with
 * its predecessor, its successor and its interpreter. */
struct gp_python {
	__u64 interpreters; /* address of the pointer to the first interpreter */
	__u64 code_mask;    /* the bits of a frame's code pointer that are the address */
	__u64 generation;   /* changes whenever a code object is freed; 0: this is not counted */
	__u16 interp_next;
	__u16 interp_threads;
	__u16 state_thread_id;
	__u16 state_frame;  /* the innermost frame or, with `has_cframe`, the C frame */
	__u16 cframe_frame; /* 3.11, 3.12 */
	__u16 has_cframe;
	__u16 frame_at;
	__u16 frame_bytes;
	__u16 frame_code;
	__u16 frame_back;
	__u16 frame_instr; /* the instruction's address or, with `is_index`, its 32-bit index */
	__u16 is_index;	   /* up to 3.10 */
	__u16 frame_owner; /* a byte, or GP_PYTHON_NO_FIELD */
	__u16 code_start;  /* the first instruction; lasti is relative to it */
	__u16 code_check;
	__u16 code_filename; /* up to 3.11, else 0: see struct gp_python_made */
	__u16 has_window;    /* frames are contiguous: since 3.11 */
	__u16 sees_catches;  /* an op that an exception has left is known to have ended */
	__u16 is_known;	     /* the other members are valid */
	__u16 frame_entry;   /* a non-zero byte: see `entries` of gp_ev_stack. 0: no such field */
	/* For module calls; the BPF programs do not use these. */
	__u16 frame_locals; /* of the first local variable, from the frame's beginning */
	__u16 code_file;    /* in a code object: two texts, and the number of local variables */
	__u16 code_name;
	__u16 code_locals_nr;
	__u16 text_bytes;   /* where the characters of an ASCII text begin */
	__u16 dict_version; /* in a dict: a unique number, up to 3.13, else 0 */
	__u16 reserved[2];
};

/* One step of the checksum of a code object. */
static inline __u64 gp_python_mix(__u64 hash, __u64 value)
{
	hash = (hash ^ value) * 0x9e3779b97f4a7c15ULL;
	return hash ^ hash >> 29;
}

static inline __u64 gp_python_mix_words(__u64 hash, const __u64 *words, int nr)
{
	for (int i = 0; i < nr; i++)
		hash = gp_python_mix(hash, words[i]);
	return hash;
}

/*
 * Since 3.12 a code object has a unique number. Before, code made at run time ("<string>") can
 * replace other code with all of its addresses, so this many bytes of its file name (an ASCII one)
 * and of its line table are checksummed too. Of the name: the words from byte 16 on, the length
 * first; of the table: its bytes, which begin at 32.
 */
#define GP_PYTHON_NAME_BYTES  40
#define GP_PYTHON_LINES_BYTES 64

struct gp_python_made {
	__u64 name_bytes; /* 0: not read */
	__u64 name_head[3];
	__u64 name[GP_PYTHON_NAME_BYTES / 8];
	__u64 lines_bytes;
	__u64 lines[GP_PYTHON_LINES_BYTES /
		    8]; /* zeros behind lines_bytes; likewise for the name */
};

/*
 * The collector's note on a thread: what its innermost open op began under, while that op's call
 * has not returned. As long as `frame` is the thread's innermost frame it waits in that very call,
 * so the thread's Python stack is the op's. No note: `state` is 0.
 */
struct gp_stack_top {
	__u64 self;	/* the thread's pointer, 0: nobody's */
	__u64 state;	/* its Python thread state */
	__u64 interp;	/* the only interpreter; once there is another one the note is void */
	__u64 frame;	/* 0: the thread ran no Python */
	__u64 record;	/* lies in the call: once the thread's stack pointer is above it, the op has
			   ended */
	__u32 stack_id; /* the collector's id; 0: there is no Python stack */
	__u32 reserved;
	__u64 pad[2];
};

/* Places in the collector's table of notes, a power of two. If two threads map to one place, one of
 * them has none. */
#define GP_STACK_TOPS 1024

static inline __u32 gp_stack_top_place(__u64 self)
{
	return (__u32)(gp_python_mix(0, self) >> 32) & (GP_STACK_TOPS - 1);
}

/* ---- native code ---- */

/* How to find the CFA, the caller's stack pointer, at an instruction. The return address lies right
 * below it. */
enum gp_unwind_cfa {
	GP_UNWIND_NONE = 0,  /* unknown: no function, or one without unwind information */
	GP_UNWIND_END = 1,   /* the outermost function of a thread */
	GP_UNWIND_HARD = 2,  /* known, but not as one of these rules */
	GP_UNWIND_SP = 3,    /* rsp + cfa */
	GP_UNWIND_BP = 4,    /* rbp + cfa */
	GP_UNWIND_BP_AT = 5, /* the value at rbp + cfa: a realigned frame */
	GP_UNWIND_SIGNAL =
		6,	   /* the value at rsp + cfa, with the interrupted instruction behind it */
	GP_UNWIND_PLT = 7, /* rsp + cfa, 8 more from byte `bp` of 16 on */
};

/* How to find the caller's rbp. */
enum gp_unwind_bp {
	GP_UNWIND_BP_SAME = 0,
	GP_UNWIND_BP_CFA = 1,  /* at CFA + bp */
	GP_UNWIND_BP_BP = 2,   /* at rbp + bp */
	GP_UNWIND_BP_SP = 3,   /* at rsp + bp */
	GP_UNWIND_BP_LOST = 4, /* lost */
};

/* A rule in one word: the two kinds, a byte each, then `cfa` and `bp` as signed 24-bit numbers. */
#define GP_UNWIND_RULE(cfa_kind, bp_kind, cfa, bp)                                                 \
	((__u64)(cfa_kind) | (__u64)(bp_kind) << 8 | ((__u64)(cfa)&0xffffff) << 16 |               \
	 (__u64)(bp) << 40)
#define GP_UNWIND_RULE_CFA_KIND(rule) ((__u8)(rule))
#define GP_UNWIND_RULE_BP_KIND(rule)  ((__u8)((rule) >> 8))
#define GP_UNWIND_RULE_CFA(rule)      ((__s64)((rule) << 24) >> 40)
#define GP_UNWIND_RULE_BP(rule)	      ((__s64)(rule) >> 40)

/*
 * A file's table is an array of words: rows, rules, pages. A row is the ELF address from which it
 * holds, shifted left by 32, and the index of its rule; rows ascend, and the first has address 0. A
 * page stands for GP_UNWIND_PAGE bytes of addresses: the index of the row that holds at its first
 * byte and, shifted left by 32, that of the first row behind it.
 */
#define GP_UNWIND_PAGE_SHIFT 9

/* Where a process has a file mapped, and its table. `table` 0: not loaded. */
struct gp_unwind_range {
	__u64 start;
	__u64 end;
	__u64 bias; /* address = bias + ELF address */
	__u32 table;
	__u32 asked; /* the kernel has requested the table */
	__u32 rules_at;
	__u32 pages_at;
	__u32 first_page;
	__u32 pages_nr;
};

/* Ranges of one process, ascending. In front is one whose `start` is their number and whose `end`
 * is the number of mapping changes when they were listed. */
#define GP_UNWIND_RANGES_MAX 4096
/* The most tables, for all processes. */
#define GP_UNWIND_TABLES_MAX 4096

#endif /* GP_BPF_WALKS_H */
