/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Machine code of one function as instructions and basic blocks, as far as placing probes needs to
 * know: where control goes, how the stack pointer moves, and which instructions the kernel emulates
 * when they carry a uprobe (the others are single-stepped, which costs some twenty times as much).
 * x86-64. The bytes are not trusted; whatever they are, decoding is bounded.
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
	CODE_STOP = 6, /* never goes on: ud2, hlt, a call that does not return */
};

struct code_insn {
	uint32_t offset; /* from the function's start */
	uint8_t bytes;
	uint8_t kind; /* enum code_kind */
	bool emulated;
	bool canary;	/* a branch that compares the stack protector's canary; taken: overrun */
	bool table;	/* an indirect jump that looks its target up: it stays inside */
	int64_t target; /* jump, branch, direct call: offset from the function's start */
	int32_t height; /* stack pointer at function entry minus that before this instruction;
			   CODE_HEIGHT_UNKNOWN if nothing that was understood leads here */
};

#define CODE_HEIGHT_UNKNOWN INT32_MAX
#define CODE_NO_TARGET	    INT64_MIN

struct code_block {
	uint32_t first; /* index of its first instruction */
	uint32_t nr;
	int32_t next[2]; /* blocks it can go on to, -1: none */
	uint32_t preds;	 /* where in code.preds those that come here begin */
	uint32_t preds_nr;
	bool leaves;  /* its last instruction leaves the function normally */
	bool returns; /* a normal return can be reached from it */
};

struct code {
	VEC(struct code_insn) insns;
	VEC(struct code_block) blocks;
	VEC(uint32_t) preds;
	uint32_t bytes;
	bool has_table; /* jumps through a table: not all edges are known */
	/* Set by the caller, may be NULL: whether a function is known to begin at that offset from
	 * this one's start. */
	bool (*is_function)(const void *arg, int64_t offset);
	const void *arg;
};

/* More than any function we probe has. */
#define CODE_FUNCTION_BYTES_MAX 131072

struct code_decoder;

/* NULL if the disassembler cannot be had. */
struct code_decoder *code_decoder__new(void);
void code_decoder__free(struct code_decoder *d);
/* Which version of the library behind it decodes. */
uint32_t code_decoder_version(void);

/* From now on calls of what `is_end` knows never go on. The offset is from the function's start. */
void code_decoder__set_ends(struct code_decoder *d, bool (*is_end)(const void *arg, int64_t offset),
			    const void *arg);

/* Decodes the whole function. 0, -EINVAL (bytes that are no code; too long), or -ENOMEM. The caller
 * calls code__done() in either case. */
int code__read(struct code *c, struct code_decoder *d, const unsigned char *bytes, size_t nr);
void code__done(struct code *c);

/* Where an entry probe goes, see plan.h. Needs only the function's beginning. Always finds a place
 * if the first instruction can be decoded: that one, at worst. 0 or -EINVAL. */
int code_entry(struct code_decoder *d, const unsigned char *bytes, size_t nr,
	       struct code_insn *ret_insn);

enum code_exit_rule {
	CODE_EXIT_ANY = 0,    /* a jump to another function at the end ends this one */
	CODE_EXIT_RETURN = 1, /* a function with such jumps is refused: it has not ended there */
	CODE_EXIT_RESULT = 2, /* the same, and the returns themselves: the result stands then */
};

/* Indexes of the instructions to probe for exits, see plan.h; each normal return passes exactly
 * one, and after the entry's site, which lies at entry_offset. 0, -ENOMEM, or -EINVAL with the
 * reason in *ret_why. */
#define CODE_EXITS_MAX 64
int code_exits(struct code *c, uint32_t entry_offset, enum code_exit_rule rule,
	       uint32_t ret_insns[CODE_EXITS_MAX], size_t *ret_nr, const char **ret_why);

/* After code_exits() has succeeded: whether each normal return passes the instruction, and none
 * more than once, by all ways that are known: where jump tables lead is not. false if memory is
 * short. */
bool code_passes_once(const struct code *c, uint32_t insn);

/* The constant that the instructions just before this one put into the register of the second
 * argument, or -1. `bytes` is the function's code. */
int64_t code_second_argument(const struct code *c, const unsigned char *bytes, uint32_t insn);

#endif /* GP_PROBE_PLAN_CODE_H */
