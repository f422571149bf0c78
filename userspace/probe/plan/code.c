/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Decodes with Capstone, without its operand details where speed matters: control flow and stack
 * movements are read from the few encodings that compilers use for them. An unknown encoding makes
 * a probe more expensive or impossible, never wrong.
 */
#include "probe/plan/code.h"

#include <capstone/capstone.h>
#include <errno.h>
#include <string.h>

#define ENTRY_INSNS_MAX 32

struct code_decoder {
	csh plain;
	csh detailed;
	cs_insn *plain_insn;
	cs_insn *detailed_insn;
	bool (*is_end)(const void *arg, int64_t offset);
	const void *is_end_arg;
};

void code_decoder__set_ends(struct code_decoder *d, bool (*is_end)(const void *arg, int64_t offset),
			    const void *arg)
{
	d->is_end = is_end;
	d->is_end_arg = arg;
}

uint32_t code_decoder_version(void)
{
	return cs_version(NULL, NULL);
}

void code_decoder__free(struct code_decoder *d)
{
	if (!d)
		return;
	if (d->plain_insn)
		cs_free(d->plain_insn, 1);
	if (d->detailed_insn)
		cs_free(d->detailed_insn, 1);
	if (d->plain)
		(void)cs_close(&d->plain);
	if (d->detailed)
		(void)cs_close(&d->detailed);
	free(d);
}

struct code_decoder *code_decoder__new(void)
{
	struct code_decoder *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	if (cs_open(CS_ARCH_X86, CS_MODE_64, &d->plain) ||
	    cs_open(CS_ARCH_X86, CS_MODE_64, &d->detailed) ||
	    cs_option(d->detailed, CS_OPT_DETAIL, CS_OPT_ON)) {
		code_decoder__free(d);
		return NULL;
	}
	d->plain_insn = cs_malloc(d->plain);
	d->detailed_insn = cs_malloc(d->detailed);
	if (!d->plain_insn || !d->detailed_insn) {
		code_decoder__free(d);
		return NULL;
	}
	return d;
}

void code__done(struct code *c)
{
	vec_done(&c->insns);
	vec_done(&c->blocks);
	vec_done(&c->preds);
}

static int64_t relative8(const unsigned char *p)
{
	return (int8_t)*p;
}

static int64_t relative32(const unsigned char *p)
{
	int32_t n;

	memcpy(&n, p, sizeof(n));
	return n;
}

/* Classifies jumps, branches and calls to a fixed address, and other instructions that the kernel
 * emulates. True if it is one of these. Accepts no prefix but REX: with others the kernel may
 * refuse to emulate. */
static bool classify_direct(const unsigned char *b, size_t nr, struct code_insn *insn)
{
	int64_t after = (int64_t)insn->offset + (int64_t)nr;

	insn->emulated = true;
	if (nr == 2 && b[0] == 0xeb) {
		insn->kind = CODE_JUMP;
		insn->target = after + relative8(b + 1);
	} else if (nr == 5 && b[0] == 0xe9) {
		insn->kind = CODE_JUMP;
		insn->target = after + relative32(b + 1);
	} else if (nr == 5 && b[0] == 0xe8) {
		insn->kind = CODE_CALL;
		insn->target = after + relative32(b + 1);
	} else if (nr == 2 && b[0] >= 0x70 && b[0] <= 0x7f) {
		insn->kind = CODE_BRANCH;
		insn->target = after + relative8(b + 1);
	} else if (nr == 6 && b[0] == 0x0f && b[1] >= 0x80 && b[1] <= 0x8f) {
		insn->kind = CODE_BRANCH;
		insn->target = after + relative32(b + 2);
	} else if ((nr == 1 && b[0] >= 0x50 && b[0] <= 0x57) ||
		   (nr == 2 && b[0] == 0x41 && b[1] >= 0x50 && b[1] <= 0x57)) {
		/* push of a register */
	} else if (!(nr == 1 && b[0] == 0x90)) {
		insn->emulated = false;
		return false;
	}
	return true;
}

/* Counts the prefix bytes. */
static size_t prefixes(const unsigned char *b, size_t nr)
{
	size_t n = 0;

	while (n < nr &&
	       (b[n] == 0x66 || b[n] == 0xf2 || b[n] == 0xf3 || b[n] == 0x2e || b[n] == 0x36 ||
		b[n] == 0x3e || b[n] == 0x26 || b[n] == 0x64 || b[n] == 0x65 || b[n] == 0x67))
		n++;
	return n;
}

static void classify_prefixed(const unsigned char *b, size_t nr, struct code_insn *insn)
{
	size_t n = prefixes(b, nr);
	struct code_insn inner = *insn;

	if (n < nr && (b[n] & 0xf0) == 0x40)
		n++;
	if (n == nr)
		return;
	if (b[n] == 0xc3 || b[n] == 0xc2) {
		insn->kind = CODE_RETURN;
	} else if (b[n] == 0xf4 || b[n] == 0xcc ||
		   (b[n] == 0x0f && n + 1 < nr && b[n + 1] == 0x0b)) {
		insn->kind = CODE_STOP;
	} else if (b[n] == 0xff && n + 1 < nr) {
		unsigned int op = b[n + 1] >> 3 & 7;

		if (op == 2 || op == 3)
			insn->kind = CODE_CALL;
		else if (op == 4 || op == 5)
			insn->kind = CODE_INDIRECT;
		/* With "notrack", or through memory with a scaled index. */
		insn->table = b[0] == 0x3e || (b[n + 1] & 0xc7) == 0x04;
	} else if (b[n] >= 0xe0 && b[n] <= 0xe3 && n + 2 == nr) { /* loop, jrcxz */
		insn->kind = CODE_BRANCH;
		insn->target = (int64_t)insn->offset + (int64_t)nr + relative8(b + n + 1);
	} else if (n) {
		inner.offset += (uint32_t)n;
		if (classify_direct(b + n, nr - n, &inner)) {
			insn->kind = inner.kind;
			insn->target = inner.target;
		}
	}
}

static void classify(const unsigned char *b, size_t nr, struct code_insn *insn)
{
	insn->kind = CODE_OTHER;
	insn->target = CODE_NO_TARGET;
	if (!classify_direct(b, nr, insn))
		classify_prefixed(b, nr, insn);
}

/* An instruction that reads the canary, %fs:0x28, by its absolute address. */
static bool reads_canary(const unsigned char *b, size_t nr)
{
	static const unsigned char address[] = {0x25, 0x28, 0, 0, 0};

	return nr == 9 && b[0] == 0x64 && (b[1] & 0xf8) == 0x48 && (b[3] & 0xc7) == 0x04 &&
	       !memcmp(b + 4, address, sizeof(address));
}

/* Whether it compares a register with memory in the frame, as clang does after loading the canary.
 */
static bool compares(const unsigned char *b, size_t nr)
{
	return nr >= 4 && (b[0] & 0xf8) == 0x48 && (b[1] == 0x3b || b[1] == 0x39);
}

/* Whether the jne before `at` tests the canary: sub, xor or cmp with it just before, or a load of
 * it and then a cmp. */
static bool is_canary(const struct code *c, const unsigned char *bytes, size_t i)
{
	const struct code_insn *in = c->insns.items;
	const unsigned char *b = bytes + in[i].offset, *before;
	bool jne = b[0] == 0x75 || (b[0] == 0x0f && b[1] == 0x85);

	if (!i || !jne || in[i].kind != CODE_BRANCH)
		return false;
	before = bytes + in[i - 1].offset;
	if (reads_canary(before, in[i - 1].bytes))
		return before[2] == 0x2b || before[2] == 0x33 || before[2] == 0x3b ||
		       before[2] == 0x39;
	return i > 1 && compares(before, in[i - 1].bytes) &&
	       reads_canary(bytes + in[i - 2].offset, in[i - 2].bytes);
}

/* The stack pointer's position: `height` below its place at entry, and what %rbp holds. */
struct stack {
	int32_t height;
	int32_t frame; /* height when %rbp was set from %rsp; CODE_HEIGHT_UNKNOWN: it was not */
};

static void stack_add(struct stack *s, int64_t bytes)
{
	if (s->height == CODE_HEIGHT_UNKNOWN)
		return;
	if (s->height + bytes < -65536 || s->height + bytes > (1 << 28))
		s->height = CODE_HEIGHT_UNKNOWN;
	else
		s->height += (int32_t)bytes;
}

static void stack_from_frame(struct stack *s, int64_t displacement)
{
	s->height = s->frame;
	stack_add(s, -displacement);
}

/* sub, add and lea on %rsp, and moves between it and %rbp. */
static void stack_pointer_arithmetic(struct stack *s, const unsigned char *b, size_t nr)
{
	if (nr < 3 || b[0] != 0x48)
		return;
	if (nr == 4 && b[1] == 0x83 && b[2] == 0xec)
		stack_add(s, relative8(b + 3));
	else if (nr == 4 && b[1] == 0x83 && b[2] == 0xc4)
		stack_add(s, -relative8(b + 3));
	else if (nr == 7 && b[1] == 0x81 && b[2] == 0xec)
		stack_add(s, relative32(b + 3));
	else if (nr == 7 && b[1] == 0x81 && b[2] == 0xc4)
		stack_add(s, -relative32(b + 3));
	else if (nr == 4 && b[1] == 0x8d && b[2] == 0x65)
		stack_from_frame(s, relative8(b + 3));
	else if (nr == 7 && b[1] == 0x8d && b[2] == 0xa5)
		stack_from_frame(s, relative32(b + 3));
	else if (nr == 5 && b[1] == 0x8d && b[2] == 0x64 && b[3] == 0x24)
		stack_add(s, -relative8(b + 4));
	else if (nr == 8 && b[1] == 0x8d && b[2] == 0xa4 && b[3] == 0x24)
		stack_add(s, -relative32(b + 4));
	else if (nr == 3 && ((b[1] == 0x89 && b[2] == 0xe5) || (b[1] == 0x8b && b[2] == 0xec)))
		s->frame = s->height;
	else if (nr == 3 && ((b[1] == 0x89 && b[2] == 0xec) || (b[1] == 0x8b && b[2] == 0xe5)))
		s->height = s->frame;
}

/* Applies one instruction to the stack pointer. */
static void stack_step(struct stack *s, const unsigned char *b, size_t nr)
{
	size_t rex = nr > 1 && b[0] == 0x41;

	if (nr == 1 + rex && b[rex] >= 0x50 && b[rex] <= 0x57) {
		stack_add(s, 8);
	} else if (nr == 1 + rex && b[rex] >= 0x58 && b[rex] <= 0x5f) {
		stack_add(s, -8);
	} else if (b[0] == 0x6a || b[0] == 0x68 ||
		   (b[0] == 0xff && nr > 1 && (b[1] >> 3 & 7) == 6)) {
		stack_add(s, 8);
	} else if (b[0] == 0x8f) {
		stack_add(s, -8);
	} else if (nr == 1 && b[0] == 0xc9) {
		s->height = s->frame;
		stack_add(s, -8);
	} else {
		stack_pointer_arithmetic(s, b, nr);
	}
}

static int decode(struct code *c, struct code_decoder *d, const unsigned char *bytes, size_t nr)
{
	const uint8_t *at = bytes;
	uint64_t address = 0;
	size_t left = nr;

	while (left) {
		struct code_insn insn = {.offset = (uint32_t)address,
					 .height = CODE_HEIGHT_UNKNOWN};

		if (!cs_disasm_iter(d->plain, &at, &left, &address, d->plain_insn))
			return -EINVAL;
		insn.bytes = (uint8_t)d->plain_insn->size;
		classify(bytes + insn.offset, insn.bytes, &insn);
		if (vec_push(&c->insns, insn))
			return -ENOMEM;
	}
	for (size_t i = 0; i < c->insns.nr; i++)
		c->insns.items[i].canary = is_canary(c, bytes, i);
	return 0;
}

/* Returns the index of the instruction at the offset, or -1. */
static int64_t insn_at(const struct code *c, int64_t offset)
{
	size_t low = 0, high = c->insns.nr;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (c->insns.items[middle].offset < offset)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == c->insns.nr || c->insns.items[low].offset != offset)
		return -1;
	return (int64_t)low;
}

/* The stack protector calls a function that does not return. The branch on the canary leads to that
 * call and so gives its address; each call to that address ends the path. */
static void mark_no_return(struct code *c)
{
	int64_t target = CODE_NO_TARGET;

	for (size_t i = 0; i < c->insns.nr && target == CODE_NO_TARGET; i++) {
		int64_t to = c->insns.items[i].canary ? insn_at(c, c->insns.items[i].target) : -1;

		if (to >= 0 && c->insns.items[to].kind == CODE_CALL)
			target = c->insns.items[to].target;
	}
	if (target == CODE_NO_TARGET)
		return;
	for (size_t i = 0; i < c->insns.nr; i++)
		if (c->insns.items[i].kind == CODE_CALL && c->insns.items[i].target == target)
			c->insns.items[i].kind = CODE_STOP;
}

static void mark_ends(struct code *c, const struct code_decoder *d)
{
	for (size_t i = 0; i < c->insns.nr && d->is_end; i++) {
		struct code_insn *insn = &c->insns.items[i];

		if (insn->kind == CODE_CALL && insn->target != CODE_NO_TARGET &&
		    d->is_end(d->is_end_arg, insn->target))
			insn->kind = CODE_STOP;
	}
}

static bool ends_block(const struct code_insn *insn)
{
	return insn->kind == CODE_JUMP || insn->kind == CODE_BRANCH ||
	       insn->kind == CODE_INDIRECT || insn->kind == CODE_RETURN || insn->kind == CODE_STOP;
}

/* Splits the instructions into blocks. block_of[i] becomes the block of instruction i. */
static int make_blocks(struct code *c, uint32_t *block_of)
{
	bool begins = true;

	for (size_t i = 0; i < c->insns.nr; i++)
		block_of[i] = 0;
	for (size_t i = 0; i < c->insns.nr; i++) {
		const struct code_insn *insn = &c->insns.items[i];
		int64_t to = insn->kind == CODE_JUMP || insn->kind == CODE_BRANCH
				     ? insn_at(c, insn->target)
				     : -1;

		if (to >= 0)
			block_of[to] = 1;
	}
	for (size_t i = 0; i < c->insns.nr; i++) {
		if (begins || block_of[i]) {
			struct code_block b = {.first = (uint32_t)i, .next = {-1, -1}};

			if (vec_push(&c->blocks, b))
				return -ENOMEM;
		}
		block_of[i] = (uint32_t)c->blocks.nr - 1;
		c->blocks.items[c->blocks.nr - 1].nr++;
		begins = ends_block(&c->insns.items[i]);
	}
	return 0;
}

static void link_blocks(struct code *c, const uint32_t *block_of)
{
	for (size_t i = 0; i < c->blocks.nr; i++) {
		struct code_block *b = &c->blocks.items[i];
		const struct code_insn *last = &c->insns.items[b->first + b->nr - 1];
		bool on = last->kind == CODE_OTHER || last->kind == CODE_CALL ||
			  last->kind == CODE_BRANCH;
		int64_t to = last->kind == CODE_JUMP || last->kind == CODE_BRANCH
				     ? insn_at(c, last->target)
				     : -1;

		if (on && i + 1 < c->blocks.nr)
			b->next[0] = (int32_t)i + 1;
		if (to >= 0)
			b->next[1] = (int32_t)block_of[to];
		if (b->next[1] == b->next[0])
			b->next[1] = -1;
	}
}

static int link_back(struct code *c)
{
	struct code_block *blocks = c->blocks.items;
	uint32_t at = 0;

	for (size_t i = 0; i < c->blocks.nr; i++)
		for (int k = 0; k < 2; k++)
			if (blocks[i].next[k] >= 0)
				blocks[blocks[i].next[k]].preds_nr++;
	for (size_t i = 0; i < c->blocks.nr; i++) {
		blocks[i].preds = at;
		at += blocks[i].preds_nr;
		blocks[i].preds_nr = 0;
	}
	if (vec_reserve(&c->preds, at + 1))
		return -ENOMEM;
	c->preds.nr = at;
	for (size_t i = 0; i < c->blocks.nr; i++)
		for (int k = 0; k < 2; k++)
			if (blocks[i].next[k] >= 0) {
				struct code_block *to = &blocks[blocks[i].next[k]];

				c->preds.items[to->preds + to->preds_nr++] = (uint32_t)i;
			}
	return 0;
}

/* Follows the stack pointer from the entry along all known edges, each block once. */
static int find_heights(struct code *c, const unsigned char *bytes)
{
	VEC(uint32_t) todo = {0};
	struct stack *in = calloc(c->blocks.nr, sizeof(*in));
	bool *seen = calloc(c->blocks.nr, sizeof(*seen));
	int err = in && seen ? vec_push(&todo, 0) : -ENOMEM;

	if (!err) {
		in[0] = (struct stack){.height = 0, .frame = CODE_HEIGHT_UNKNOWN};
		seen[0] = true;
	}
	while (!err && todo.nr) {
		uint32_t i = todo.items[--todo.nr];
		const struct code_block *b = &c->blocks.items[i];
		struct stack s = in[i];

		for (uint32_t k = b->first; k < b->first + b->nr; k++) {
			c->insns.items[k].height = s.height;
			stack_step(&s, bytes + c->insns.items[k].offset, c->insns.items[k].bytes);
		}
		for (int k = 0; k < 2; k++) {
			if (b->next[k] < 0 || seen[b->next[k]])
				continue;
			seen[b->next[k]] = true;
			in[b->next[k]] = s;
			err = err ?: vec_push(&todo, (uint32_t)b->next[k]);
		}
	}
	vec_done(&todo);
	free(seen);
	free(in);
	return err;
}

int code__read(struct code *c, struct code_decoder *d, const unsigned char *bytes, size_t nr)
{
	uint32_t *block_of;
	int err;

	*c = (struct code){0};
	if (!nr || nr > CODE_FUNCTION_BYTES_MAX)
		return -EINVAL;
	c->bytes = (uint32_t)nr;
	err = decode(c, d, bytes, nr);
	if (err)
		return err;
	mark_no_return(c);
	mark_ends(c, d);
	block_of = malloc(c->insns.nr * sizeof(*block_of));
	if (!block_of)
		return -ENOMEM;
	err = make_blocks(c, block_of);
	if (!err)
		link_blocks(c, block_of);
	free(block_of);
	if (!err)
		err = link_back(c);
	return err ?: find_heights(c, bytes);
}

/* The registers that carry a function's arguments, in any width. */
static bool is_argument(unsigned int reg)
{
	static const x86_reg registers[] = {
		X86_REG_RDI, X86_REG_EDI, X86_REG_DI,  X86_REG_DIL, X86_REG_RSI, X86_REG_ESI,
		X86_REG_SI,  X86_REG_SIL, X86_REG_RDX, X86_REG_EDX, X86_REG_DX,	 X86_REG_DL,
		X86_REG_DH,  X86_REG_RCX, X86_REG_ECX, X86_REG_CX,  X86_REG_CL,	 X86_REG_CH,
		X86_REG_R8,  X86_REG_R8D, X86_REG_R8W, X86_REG_R8B, X86_REG_R9,	 X86_REG_R9D,
		X86_REG_R9W, X86_REG_R9B};

	for (size_t i = 0; i < sizeof(registers) / sizeof(*registers); i++)
		if (reg == registers[i])
			return true;
	return false;
}

/* Whether the instruction leaves all argument registers as they are. */
static bool keeps_arguments(struct code_decoder *d)
{
	cs_regs reads, writes;
	uint8_t reads_nr = 0, writes_nr = 0;

	if (cs_regs_access(d->detailed, d->detailed_insn, reads, &reads_nr, writes, &writes_nr))
		return false;
	for (uint8_t i = 0; i < writes_nr; i++)
		if (is_argument(writes[i]))
			return false;
	return true;
}

/* Whether it changes the stack pointer in a way that stack_step() knows, or not at all. */
static bool stack_understood(struct code_decoder *d, const unsigned char *b, size_t nr,
			     const struct stack *before, const struct stack *after)
{
	cs_regs reads, writes;
	uint8_t reads_nr = 0, writes_nr = 0;

	if (cs_regs_access(d->detailed, d->detailed_insn, reads, &reads_nr, writes, &writes_nr))
		return false;
	for (uint8_t i = 0; i < writes_nr; i++)
		if (writes[i] == X86_REG_RSP || writes[i] == X86_REG_ESP || writes[i] == X86_REG_SP)
			return after->height != before->height &&
			       after->height != CODE_HEIGHT_UNKNOWN;
	return true;
}

int code_entry(struct code_decoder *d, const unsigned char *bytes, size_t nr,
	       struct code_insn *ret_insn)
{
	struct stack stack = {.height = 0, .frame = CODE_HEIGHT_UNKNOWN};
	const uint8_t *at = bytes;
	uint64_t address = 0;
	size_t left = nr;

	for (int n = 0; n < ENTRY_INSNS_MAX && left; n++) {
		struct code_insn insn = {.offset = (uint32_t)address, .height = stack.height};
		struct stack before = stack;

		if (!cs_disasm_iter(d->detailed, &at, &left, &address, d->detailed_insn))
			return n ? 0 : -EINVAL;
		insn.bytes = (uint8_t)d->detailed_insn->size;
		classify(bytes + insn.offset, insn.bytes, &insn);
		if (!n || insn.emulated)
			*ret_insn = insn;
		if (insn.emulated || insn.kind != CODE_OTHER)
			return 0;
		stack_step(&stack, bytes + insn.offset, insn.bytes);
		if (!keeps_arguments(d) ||
		    !stack_understood(d, bytes + insn.offset, insn.bytes, &before, &stack))
			return 0;
	}
	return nr ? 0 : -EINVAL;
}
