/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Two walks of one moment, one order. Both lists have at most GP_STACK_FRAMES frames, so what they
 * become has room.
 */
#include "capture/mixed_stacks.h"

#define MARK (1U << 31)

void kept_stacks__done(struct kept_stacks *k)
{
	hash__done(&k->stack_of);
	vec_done(&k->stacks);
	vec_done(&k->numbers);
}

int kept_stacks__add(struct kept_stacks *k, uint32_t id, const struct frame_list *python)
{
	struct kept_stack stack = {.at = k->numbers.nr, .nr = python->nr, .flags = python->flags};
	int err = vec_reserve(&k->numbers, python->nr);

	err = err ? err : hash__set(&k->stack_of, id, k->stacks.nr);
	err = err ? err : vec_push(&k->stacks, stack);
	for (uint32_t i = 0; i < python->nr && !err; i++)
		err = vec_push(&k->numbers, python->numbers[i] | (python->marks[i] ? MARK : 0));
	return err;
}

bool kept_stacks__get(const struct kept_stacks *k, uint32_t id, struct frame_list *ret_python)
{
	const uint64_t *index = hash__find(&k->stack_of, id);
	const struct kept_stack *stack;

	if (!index || *index >= k->stacks.nr)
		return false;
	stack = &k->stacks.items[*index];
	ret_python->nr = stack->nr;
	ret_python->flags = stack->flags;
	for (uint32_t i = 0; i < stack->nr; i++) {
		ret_python->numbers[i] = k->numbers.items[stack->at + i] & ~MARK;
		ret_python->marks[i] = k->numbers.items[stack->at + i] & MARK;
	}
	return true;
}

static void add_number(struct frame_list *list, uint32_t number)
{
	list->numbers[list->nr++] = number;
}

void mix_stacks(struct frame_list *native, const struct frame_list *python)
{
	struct frame_list out = {.flags = native->flags | python->flags};
	uint32_t p = 0;
	bool last;

	for (uint32_t i = 0; i < native->nr; i++) {
		if (!native->marks[i] || p == python->nr) {
			if (native->marks[i] && !python->flags)
				out.flags |= GP_STACK_INCOMPLETE;
			add_number(&out, native->numbers[i]);
			continue;
		}
		do {
			last = python->marks[p];
			add_number(&out, python->numbers[p++]);
		} while (!last && p < python->nr);
	}
	if (p < python->nr && !(out.flags & (GP_STACK_TRUNCATED | GP_STACK_INCOMPLETE)))
		out.flags |= GP_STACK_INCOMPLETE;
	while (p < python->nr)
		add_number(&out, python->numbers[p++]);
	*native = out;
}
