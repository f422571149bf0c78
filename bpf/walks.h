/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The part of wire.h that tells walks of stacks where things lie in a process: its CPython, and its
 * code. Found by gpuprof.
 */
#ifndef GP_BPF_WALKS_H
#define GP_BPF_WALKS_H

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif

/* ---- stacks ---- */

/* What stacks are wanted, together. */
enum gp_stack_want { GP_STACK_WANT_PYTHON = 1, GP_STACK_WANT_NATIVE = 2 };

enum gp_stack_flags {
	GP_STACK_TRUNCATED = 1,	 /* deeper than GP_STACK_FRAMES: the outermost frames are missing */
	GP_STACK_INCOMPLETE = 2, /* the walk did not come to its end, or a frame has no name */
	/* Whole, but the caller of code without unwind information was searched for on the stack.
	 */
	GP_STACK_SEARCHED = 4,
};

/* Added to a stack_id by the kernel's programs: it is the process's collector's. */
#define GP_STACK_EMITTED 0x80000000U

/* Frames of one stack, at most; and of the kernel's, in samples, which gives no more than 127. */
#define GP_STACK_FRAMES	 256
#define GP_KERNEL_FRAMES 128

/* Of the kernel's, of an interrupt that samples: by then it has come to the one that it
 * interrupted. */
#define GP_INTERRUPT_FRAMES 16

/* ---- Python ---- */

/* Bytes of a thread state and of a frame that hold all that the walk needs; of a code object those
 * whose checksum is taken. */
#define GP_PYTHON_STATE_BYTES 192
#define GP_PYTHON_FRAME_BYTES 128
#define GP_PYTHON_CHECK_BYTES 88
/* Neighbouring frames are read at once: those in a page, as the target has none of it or all. */
#define GP_PYTHON_PAGE_BYTES   4096
#define GP_PYTHON_WINDOW_BYTES (GP_PYTHON_PAGE_BYTES + GP_PYTHON_FRAME_BYTES)
/* Read with a frame that lies elsewhere, at most: some C frames. */
#define GP_PYTHON_BEHIND_BYTES 2048

/* Of frame_owner: there is no such field; and from this owner on a frame is the interpreter's own,
 * not a Python function's. */
#define GP_PYTHON_NO_FIELD	    0xffff
#define GP_PYTHON_OWNER_INTERPRETER 3

/* Where things lie in one process's CPython: found by gpuprof, used by both walks. Offsets
 * are from the beginning of the structure, those of a frame from `frame_at`. A thread state begins
 * with its predecessor, its successor and its interpreter. */
struct gp_python {
	__u64 interpreters; /* address of the pointer to the first interpreter */
	__u64 code_mask;    /* what of a frame's pointer to its code is the address */
	__u64 generation;   /* another one whenever a code object is freed; 0: nobody counts */
	__u16 interp_next;
	__u16 interp_threads;
	__u16 state_thread_id;
	__u16 state_frame;  /* the innermost frame, or with `has_cframe` the C frame */
	__u16 cframe_frame; /* 3.11, 3.12 */
	__u16 has_cframe;
	__u16 frame_at;
	__u16 frame_bytes;
	__u16 frame_code;
	__u16 frame_back;
	__u16 frame_instr; /* the instruction's address, or with `is_index` its 32-bit index */
	__u16 is_index;	   /* up to 3.10 */
	__u16 frame_owner; /* a byte, or GP_PYTHON_NO_FIELD */
	__u16 code_start;  /* the first instruction; lasti counts from there */
	__u16 code_check;
	__u16 code_filename; /* up to 3.11, else 0: see struct gp_python_made */
	__u16 has_window;    /* frames lie behind each other: from 3.11 on */
	__u16 sees_catches;  /* ops that an exception has left are known to have ended */
	__u16 is_known;	     /* the rest is there */
	__u16 frame_entry;   /* a byte, not 0: see `entries` of gp_ev_stack. 0: no such field */
	/* For calls of modules; the kernel has no use for these. */
	__u16 frame_locals; /* of the first local variable, from the frame's beginning */
	__u16 code_file; /* of a code object: two texts, and how many local variables there are */
	__u16 code_name;
	__u16 code_locals_nr;
	__u16 text_bytes;   /* where the characters of an ASCII text begin */
	__u16 dict_version; /* of a dict: a number that no other one had, up to 3.13, else 0 */
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
 * Since 3.12 a code object has a number that no other one gets. Before, code that was made at run
 * time ("<string>") can follow other code with all of its addresses, so so many bytes of its file
 * name (an ASCII one) and of its line table count too. Of the name: the words from byte 16 on, the
 * length first; of the table: its bytes, which begin at 32.
 */
#define GP_PYTHON_NAME_BYTES  40
#define GP_PYTHON_LINES_BYTES 64

struct gp_python_made {
	__u64 name_bytes; /* 0: not read */
	__u64 name_head[3];
	__u64 name[GP_PYTHON_NAME_BYTES / 8];
	__u64 lines_bytes;
	__u64 lines[GP_PYTHON_LINES_BYTES / 8]; /* zeros behind lines_bytes; so it is with name */
};

/*
 * What the collector says of a thread: under what its innermost open op began, where that op's call
 * has not returned. While the thread's innermost frame is `frame` that frame waits in that very
 * call, and so the thread's Python stack is the op's. Where it says nothing `state` is 0.
 */
struct gp_stack_top {
	__u64 self;	/* the thread's pointer, 0: nobody's */
	__u64 state;	/* its Python thread state */
	__u64 interp;	/* the only interpreter; once there is another one all of this is void */
	__u64 frame;	/* 0: the thread ran no Python */
	__u64 record;	/* lies in the call: below the thread's stack pointer the op has ended */
	__u32 stack_id; /* the collector's; 0: there is no Python stack */
	__u32 reserved;
	__u64 pad[2];
};

/* Places of the collector's table of them, a power of two; two threads may want the same one, and
 * one of them has none then. */
#define GP_STACK_TOPS 1024

static inline __u32 gp_stack_top_place(__u64 self)
{
	return (__u32)(gp_python_mix(0, self) >> 32) & (GP_STACK_TOPS - 1);
}

/* ---- native code ---- */

/* How the caller's stack pointer, the CFA, is found at one instruction. The return address lies
 * right below it. */
enum gp_unwind_cfa {
	GP_UNWIND_NONE = 0,  /* not told: no function, or one without unwind information */
	GP_UNWIND_END = 1,   /* the outermost function of a thread */
	GP_UNWIND_HARD = 2,  /* told in a way that no rule expresses */
	GP_UNWIND_SP = 3,    /* rsp + cfa */
	GP_UNWIND_BP = 4,    /* rbp + cfa */
	GP_UNWIND_BP_AT = 5, /* what lies at rbp + cfa: a frame that was aligned */
	GP_UNWIND_SIGNAL =
		6,	   /* what lies at rsp + cfa, and the interrupted instruction behind it */
	GP_UNWIND_PLT = 7, /* rsp + cfa, 8 more from byte `bp` of 16 on */
};

/* How the caller's rbp is found. */
enum gp_unwind_bp {
	GP_UNWIND_BP_SAME = 0,
	GP_UNWIND_BP_CFA = 1,  /* it lies at CFA + bp */
	GP_UNWIND_BP_BP = 2,   /* it lies at rbp + bp */
	GP_UNWIND_BP_SP = 3,   /* it lies at rsp + bp */
	GP_UNWIND_BP_LOST = 4, /* it cannot be had */
};

/* A rule in a word: the two kinds in a byte each, then `cfa` and `bp` as 24 bits, signed. */
#define GP_UNWIND_RULE(cfa_kind, bp_kind, cfa, bp)                                                 \
	((__u64)(cfa_kind) | (__u64)(bp_kind) << 8 | ((__u64)(cfa)&0xffffff) << 16 |               \
	 (__u64)(bp) << 40)
#define GP_UNWIND_RULE_CFA_KIND(rule) ((__u8)(rule))
#define GP_UNWIND_RULE_BP_KIND(rule)  ((__u8)((rule) >> 8))
#define GP_UNWIND_RULE_CFA(rule)      ((__s64)((rule) << 24) >> 40)
#define GP_UNWIND_RULE_BP(rule)	      ((__s64)(rule) >> 40)

/*
 * The table of a file is an array of words: rows, rules, pages, one after the other. A row is the
 * ELF address from which it holds, shifted left by 32, and the index of its rule; rows ascend, and
 * the first is that of address 0. A page stands for GP_UNWIND_PAGE bytes of addresses: the index of
 * the row that holds at its first byte, and, shifted left by 32, that of the first row behind it.
 */
#define GP_UNWIND_PAGE_SHIFT 9

/* Where a file is mapped in a process, and its table. `table` 0: not there yet. */
struct gp_unwind_range {
	__u64 start;
	__u64 end;
	__u64 bias; /* address = bias + ELF address */
	__u32 table;
	__u32 asked; /* the kernel has told that the table is missing */
	__u32 rules_at;
	__u32 pages_at;
	__u32 first_page;
	__u32 pages_nr;
};

/* Ranges of one process, ascending; in front of them stands one whose `start` is their number, and
 * whose `end` is how often what is mapped had changed when they were looked at. */
#define GP_UNWIND_RANGES_MAX 4096
/* Tables, of all processes. */
#define GP_UNWIND_TABLES_MAX 4096

#endif /* GP_BPF_WALKS_H */
