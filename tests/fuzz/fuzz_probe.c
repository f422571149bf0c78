/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Fuzzes the placing of probes with any bytes as code, and walks that code: whichever way it takes,
 * a normal return must have passed exactly one exit, and after the entry. The same bytes are read
 * as a library's schema texts.
 */
#include "base/cleanup.h"
#include "fuzz/fuzz_seed.h"
#include "probe/plan/code.h"
#include "probe/plan/names.h"

#include <string.h>

#define STEPS_MAX 512
#define WALKS	  32

struct walk {
	const struct code *code;
	const uint8_t *at; /* decisions: bits of the input */
	size_t nr;
	size_t bit;
};

static bool decide(struct walk *w)
{
	size_t i = w->bit++ % (8 * w->nr);

	return w->at[i / 8] >> i % 8 & 1;
}

static bool is_exit(const struct code_insn *insn, const struct code *c, const uint32_t *exits,
		    size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (&c->insns.items[exits[i]] == insn)
			return true;
	return false;
}

/* Follows the blocks from the first; checks at each normal return. */
static void walk_once(struct walk *w, uint32_t entry_offset, const uint32_t *exits, size_t exits_nr)
{
	const struct code *c = w->code;
	uint32_t i = 0;
	int passed = 0;
	bool entered = false;

	for (int step = 0; step < STEPS_MAX; step++) {
		const struct code_block *b = &c->blocks.items[i];
		const struct code_insn *last = &c->insns.items[b->first + b->nr - 1];
		bool outside = last->kind == CODE_BRANCH &&
			       (last->target <= 0 || last->target >= (int64_t)c->bytes);
		int32_t next;

		for (uint32_t k = b->first; k < b->first + b->nr; k++) {
			entered |= c->insns.items[k].offset == entry_offset;
			if (!is_exit(&c->insns.items[k], c, exits, exits_nr))
				continue;
			passed++;
			if (!entered)
				abort();
		}
		if (b->leaves) {
			if (passed != 1)
				abort();
			return;
		}
		/* The cold part: gone, for all we know. */
		if (outside && decide(w))
			return;
		next = b->next[b->next[1] >= 0 && (b->next[0] < 0 || decide(w))];
		if (next < 0)
			return;
		i = (uint32_t)next;
	}
}

static void place(struct code_decoder *d, enum code_exit_rule rule, const uint8_t *data,
		  size_t bytes)
{
	uint32_t exits[CODE_EXITS_MAX];
	struct code_insn entry;
	struct code c = {0};
	size_t nr = 0;
	const char *why = NULL;

	if (!code__read(&c, d, data, bytes)) {
		struct walk w = {.code = &c, .at = data, .nr = bytes};

		if (code_entry(d, data, bytes, &entry) || entry.offset >= bytes)
			abort();
		if (!code_exits(&c, entry.offset, rule, exits, &nr, &why))
			for (int i = 0; i < WALKS; i++)
				walk_once(&w, entry.offset, exits, nr);
		else if (!why)
			abort();
	}
	code__done(&c);
}

static void read_names(const uint8_t *data, size_t bytes)
{
	struct op_names names = {0};

	if (op_names__add(&names, "add_Tensor", 10) || op_names__add(&names, "a", 1) ||
	    op_names__scan(&names, data, bytes))
		abort();
	op_names__done(&names);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const unsigned char usual[] = {0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x83, 0xec, 0x18,
					      0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0,	0,    0,
					      0xe8, 0,	  0x10, 0,    0,    0x64, 0x48, 0x2b, 0x04,
					      0x25, 0x28, 0,	0,    0,    0x75, 0x06, 0x48, 0x83,
					      0xc4, 0x18, 0x5d, 0xc3, 0xe8, 0,	  0x10, 0,    0};
	static const unsigned char jumps[] = {0x55, 0x85, 0xc0, 0x74, 7,    0xe8, 0,   0x10, 0,
					      0,    0xeb, 8,	0xe8, 0,    0x10, 0,   0,    0x90,
					      0xeb, 0,	  0x5d, 0xc3, 0x3e, 0xff, 0xe0};
	static const char schema[] = "\0aten::add.Tensor(Tensor self) -> Tensor\0a(int a) -> b";

	fuzz_seed(*argc, *argv, "usual", usual, sizeof(usual));
	fuzz_seed(*argc, *argv, "jumps", jumps, sizeof(jumps));
	fuzz_seed(*argc, *argv, "schema", schema, sizeof(schema));
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static struct code_decoder *decoder;

	if (!decoder)
		decoder = code_decoder__new();
	if (!decoder)
		abort();
	read_names(data, bytes);
	if (bytes)
		for (enum code_exit_rule rule = CODE_EXIT_ANY; rule <= CODE_EXIT_RESULT; rule++)
			place(decoder, rule, data, bytes);
	return 0;
}
