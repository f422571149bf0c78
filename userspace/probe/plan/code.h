/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The machine code of one function as instructions and basic blocks, as far as placing probes needs
 * it: where control goes, how the stack pointer moves, and which instructions the kernel emulates
 * when they carry a uprobe (it single-steps the others, at some twenty times the cost). x86-64. The
 * bytes are not trusted: decoding is bounded, whatever they are.
 */
#ifndef GP_PROBE_PLAN_CODE_H
#define GP_PROBE_PLAN_CODE_H

#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

enum code_kind {
	CODE_OTHER = 0,
	CODE_CALL = 1,	   /* direct or indirect */
	CODE_JUMP = 2,	   /* unconditional, to `target` */
	CODE_BRANCH = 3,   /* conditional, to `target` or on */
	CODE_INDIRECT = 4, /* a jump through a register or memory */
	CODE_RETURN = 5,
	CODE_STOP = 6, /* control never goes on: ud2, hlt, a call that does not return */
};

struct code_insn {
	uint32_t offset; /* from the function's start */
	uint8_t bytes;
	uint8_t kind; /* enum code_kind */
	bool emulated;
	bool canary;	/* a branch on the stack protector's canary; taken if it was overwritten */
	bool table;	/* an indirect jump through a jump table: it stays in the function */
	int64_t target; /* jump, branch, direct call: offset from the function's start */
	int32_t height; /* stack pointer at function entry minus that before this instruction;
			   CODE_HEIGHT_UNKNOWN if no understood path leads here */
};

#define CODE_HEIGHT_UNKNOWN INT32_MAX
#define CODE_NO_TARGET	    INT64_MIN

struct code_block {
	uint32_t first; /* index of its first instruction */
	uint32_t nr;
	int32_t next[2]; /* its successors; -1: none */
	uint32_t preds;	 /* where its predecessors begin in code.preds */
	uint32_t preds_nr;
	bool leaves;  /* its last instruction returns normally */
	bool returns; /* a normal return can be reached from it */
};

struct code {
	VEC(struct code_insn) insns;
	VEC(struct code_block) blocks;
	VEC(uint32_t) preds;
	uint32_t bytes;
	bool has_table; /* ends in a jump table: not all successors are known */
	/* Set by the caller, may be NULL: whether a known function begins at that offset from this
	 * one's start. */
	bool (*is_function)(const void *arg, int64_t offset);
	const void *arg;
};

/* Larger than any function that is probed. */
#define CODE_FUNCTION_BYTES_MAX 131072

struct code_decoder;

/* Creates a decoder; NULL if the disassembler is not available. */
struct code_decoder *code_decoder__new(void);
void code_decoder__free(struct code_decoder *d);
/* Returns the version of the disassembler library. */
uint32_t code_decoder_version(void);

/* Declares functions that never return. The offset is from the function's start. */
void code_decoder__set_ends(struct code_decoder *d, bool (*is_end)(const void *arg, int64_t offset),
			    const void *arg);

/* Decodes the whole function. 0, -EINVAL (not code, or too long), or -ENOMEM. The caller calls
 * code__done() in any case. */
int code__read(struct code *c, struct code_decoder *d, const unsigned char *bytes, size_t nr);
void code__done(struct code *c);

/* Finds the site of an entry probe, see plan.h, from the function's beginning. If the first
 * instruction can be decoded there always is one: at worst that instruction. 0 or -EINVAL. */
int code_entry(struct code_decoder *d, const unsigned char *bytes, size_t nr,
	       struct code_insn *ret_insn);

enum code_exit_rule {
	CODE_EXIT_ANY = 0,    /* a tail call ends the function */
	CODE_EXIT_RETURN = 1, /* a function with tail calls is refused: it has not ended there */
	CODE_EXIT_RESULT =
		2, /* likewise, and only the returns themselves, when the result is set */
};

/* Finds the instructions to probe for exits, see plan.h: each normal return passes exactly one of
 * them, after the entry site at entry_offset. 0, -ENOMEM, or -EINVAL with the reason in *ret_why.
 */
#define CODE_EXITS_MAX 64
int code_exits(struct code *c, uint32_t entry_offset, enum code_exit_rule rule,
	       uint32_t ret_insns[CODE_EXITS_MAX], size_t *ret_nr, const char **ret_why);

/* After code_exits() has succeeded: whether each normal return passes the instruction exactly once,
 * on all known paths (those through jump tables are not known). False if memory is short. */
bool code_passes_once(const struct code *c, uint32_t insn);

/* Returns the constant that the instructions just before this one load into the second argument's
 * register, or -1. `bytes` is the function's code. */
int64_t code_second_argument(const struct code *c, const unsigned char *bytes, uint32_t insn);

#endif /* GP_PROBE_PLAN_CODE_H */
