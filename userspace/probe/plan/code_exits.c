/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Finds where a function's exits are probed. A normal return is a `ret`, or a jump to another
 * function, with the stack as at entry. A `ret` could be probed itself, but is single-stepped. So
 * the search walks back from it, over code that only leads to this return, to an instruction that
 * the kernel emulates: mostly the branch on the stack protector's canary. It never walks past a
 * call: the callee may throw, and runs inside the function.
 */
#include "probe/plan/code.h"

#include <errno.h>
#include <string.h>

#define WALK_DEPTH_MAX 8

struct walk {
	struct code *code;
	uint32_t entry_offset;
	uint32_t sites[CODE_EXITS_MAX];
	size_t nr;
};

static const struct code_insn *last_of(const struct code *c, const struct code_block *b)
{
	return &c->insns.items[b->first + b->nr - 1];
}

/* Whether it jumps out of the function, or to its very beginning. */
static bool goes_outside(const struct code *c, const struct code_insn *insn)
{
	return insn->target <= 0 || insn->target >= (int64_t)c->bytes;
}

/* Finds the blocks that return normally. A jump out with a frame on the stack leads to the
 * function's cold part, which throws or aborts. */
static int find_leaving(struct code *c, const char **ret_why)
{
	bool off = false, other = false;

	for (size_t i = 0; i < c->blocks.nr; i++) {
		struct code_block *b = &c->blocks.items[i];
		const struct code_insn *last = last_of(c, b);
		bool no_bpf = last->height == 0;

		if (last->kind == CODE_RETURN) {
			b->leaves = true;
			off |= !no_bpf && last->height != CODE_HEIGHT_UNKNOWN;
		} else if (last->kind == CODE_JUMP && goes_outside(c, last)) {
			b->leaves = no_bpf;
			other = true;
		} else if (last->kind == CODE_INDIRECT) {
			b->leaves = no_bpf && !last->table;
			c->has_table |= !b->leaves;
			other = true;
		} else if (last->kind == CODE_BRANCH && no_bpf && goes_outside(c, last) &&
			   c->is_function && c->is_function(c->arg, last->target)) {
			*ret_why = "it ends with a conditional jump to another function";
			return -EINVAL;
		}
	}
	if (off && other) {
		*ret_why = "its use of the stack cannot be followed";
		return -EINVAL;
	}
	return 0;
}

/* Marks every block from which a returning one can be reached. */
static int find_returning(struct code *c)
{
	VEC(uint32_t) todo = {0};
	int err = 0;

	for (uint32_t i = 0; i < c->blocks.nr && !err; i++)
		if (c->blocks.items[i].leaves) {
			c->blocks.items[i].returns = true;
			err = vec_push(&todo, i);
		}
	while (!err && todo.nr) {
		const struct code_block *b = &c->blocks.items[todo.items[--todo.nr]];

		for (uint32_t k = 0; k < b->preds_nr && !err; k++) {
			uint32_t p = c->preds.items[b->preds + k];

			if (c->blocks.items[p].returns)
				continue;
			c->blocks.items[p].returns = true;
			err = vec_push(&todo, p);
		}
	}
	vec_done(&todo);
	return err;
}

/* Whether all successors are known. A cold part may jump back anywhere. */
static bool is_certain(const struct code *c, const struct code_insn *last)
{
	if (last->canary || last->kind == CODE_RETURN)
		return true;
	return !c->has_table && !(last->kind == CODE_BRANCH && goes_outside(c, last));
}

/* Whether every return through block p goes on to block `to`, by a known edge. */
static bool leads_only_to(const struct code *c, uint32_t p, uint32_t to)
{
	const struct code_block *b = &c->blocks.items[p];

	if (!is_certain(c, last_of(c, b)))
		return false;
	for (int k = 0; k < 2; k++)
		if (b->next[k] >= 0 && (uint32_t)b->next[k] != to &&
		    c->blocks.items[b->next[k]].returns)
			return false;
	return !b->leaves;
}

static bool has_call(const struct code *c, const struct code_block *b)
{
	for (uint32_t k = 0; k < b->nr; k++)
		if (c->insns.items[b->first + k].kind == CODE_CALL)
			return true;
	return false;
}

/* Finds sites such that whoever passes the end of block i has passed exactly one. False if there
 * are no cheap ones. In the first block it only considers what follows the entry site. */
static bool walk_back(struct walk *w, uint32_t i, int depth)
{
	const struct code *c = w->code;
	const struct code_block *b = &c->blocks.items[i];
	const struct code_insn *last = last_of(c, b);

	if (!i && last->offset <= w->entry_offset)
		return false;
	if (!is_certain(c, last))
		return false;
	if (last->emulated && (last->kind == CODE_JUMP || last->kind == CODE_BRANCH)) {
		if (w->nr == CODE_EXITS_MAX)
			return false;
		w->sites[w->nr++] = b->first + b->nr - 1;
		return true;
	}
	if (!i || has_call(c, b) || !b->preds_nr || depth == WALK_DEPTH_MAX)
		return false;
	for (uint32_t k = 0; k < b->preds_nr; k++) {
		uint32_t p = c->preds.items[b->preds + k];

		if (p == i || !leads_only_to(c, p, i) || !walk_back(w, p, depth + 1))
			return false;
	}
	return true;
}

int code_exits(struct code *c, uint32_t entry_offset, enum code_exit_rule rule,
	       uint32_t ret_insns[CODE_EXITS_MAX], size_t *ret_nr, const char **ret_why)
{
	struct walk w = {.code = c, .entry_offset = entry_offset};
	int err = find_leaving(c, ret_why);

	if (!err)
		err = find_returning(c);
	if (err)
		return err;
	for (uint32_t i = 0; i < c->blocks.nr; i++) {
		const struct code_block *b = &c->blocks.items[i];
		size_t before = w.nr;

		if (!b->leaves)
			continue;
		if (rule != CODE_EXIT_ANY && last_of(c, b)->kind != CODE_RETURN) {
			*ret_why = "it ends in another function";
			return -EINVAL;
		}
		if (rule != CODE_EXIT_RESULT && walk_back(&w, i, 0))
			continue;
		w.nr = before;
		if (w.nr == CODE_EXITS_MAX) {
			*ret_why = "it has too many exits";
			return -EINVAL;
		}
		w.sites[w.nr++] = b->first + b->nr - 1;
	}
	if (!w.nr) {
		*ret_why = "no normal return was found in it";
		return -EINVAL;
	}
	memcpy(ret_insns, w.sites, w.nr * sizeof(*w.sites));
	*ret_nr = w.nr;
	return 0;
}

/* Marks what can be reached from block i without going through `wall`. */
static int reach(const struct code *c, uint32_t i, uint32_t wall, bool *seen)
{
	VEC(uint32_t) todo = {0};
	int err = vec_push(&todo, i);

	seen[i] = true;
	while (!err && todo.nr) {
		const struct code_block *b = &c->blocks.items[todo.items[--todo.nr]];

		for (int k = 0; k < 2 && !err; k++) {
			if (b->next[k] < 0 || (uint32_t)b->next[k] == wall || seen[b->next[k]])
				continue;
			seen[b->next[k]] = true;
			err = vec_push(&todo, (uint32_t)b->next[k]);
		}
	}
	vec_done(&todo);
	return err;
}

/* Whether a return can be reached without block `at`, or `at` can be reached from itself. */
static bool is_avoided_or_repeated(const struct code *c, uint32_t at, bool *seen)
{
	if (at && reach(c, 0, at, seen))
		return true;
	for (uint32_t i = 0; i < c->blocks.nr; i++)
		if (seen[i] && c->blocks.items[i].leaves)
			return true;
	memset(seen, 0, c->blocks.nr * sizeof(*seen));
	for (int k = 0; k < 2; k++)
		if (c->blocks.items[at].next[k] >= 0 &&
		    reach(c, (uint32_t)c->blocks.items[at].next[k], UINT32_MAX, seen))
			return true;
	return seen[at];
}

bool code_passes_once(const struct code *c, uint32_t insn)
{
	bool *seen = calloc(c->blocks.nr + 1, sizeof(*seen));
	bool once = false;

	for (uint32_t i = 0; i < c->blocks.nr && seen; i++)
		if (insn - c->blocks.items[i].first < c->blocks.items[i].nr)
			once = !is_avoided_or_repeated(c, i, seen);
	free(seen);
	return once;
}

#define LOOK_BACK_INSNS 8

int64_t code_second_argument(const struct code *c, const unsigned char *bytes, uint32_t insn)
{
	for (uint32_t n = 1; n <= LOOK_BACK_INSNS && n <= insn; n++) {
		const struct code_insn *i = &c->insns.items[insn - n];
		const unsigned char *b = bytes + i->offset;
		int32_t value;

		if (i->kind != CODE_OTHER)
			return -1;
		if (i->bytes == 2 && (b[0] == 0x31 || b[0] == 0x33) && b[1] == 0xf6)
			return 0; /* xor %esi, %esi */
		if (i->bytes != 5 || b[0] != 0xbe)
			continue; /* mov $value, %esi */
		memcpy(&value, b + 1, sizeof(value));
		return value;
	}
	return -1;
}
