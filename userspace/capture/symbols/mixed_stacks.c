/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Two walks of one moment, one order. Both lists have at most GP_STACK_FRAMES frames, and in one of
 * them GP_KERNEL_FRAMES more, so what they become has room.
 */
#include "capture/symbols/mixed_stacks.h"

#include <errno.h>

#define MARK (1U << 31)

/* Of all stacks together: 64 MiB. */
#define FRAMES_MAX (1U << 24)

void kept_stacks__done(struct kept_stacks *k)
{
	vec_done(&k->stacks);
	vec_done(&k->frames);
}

static const struct kept_stack *find_stack(const struct kept_stacks *k, uint32_t number)
{
	return number < k->stacks.nr && k->stacks.items[number].known ? &k->stacks.items[number]
								      : NULL;
}

int kept_stacks__add(struct kept_stacks *k, uint32_t number, const struct frame_list *stack)
{
	struct kept_stack kept = {
		.at = k->frames.nr, .nr = stack->nr, .flags = stack->flags, .known = true};
	int err = vec_reserve(&k->frames, stack->nr);

	if (find_stack(k, number))
		return -EEXIST;
	if (k->frames.nr + stack->nr > FRAMES_MAX)
		return -ENOSPC;
	while (!err && k->stacks.nr <= number)
		err = vec_push(&k->stacks, (struct kept_stack){0});
	if (err)
		return err;
	for (uint32_t i = 0; i < stack->nr; i++)
		k->frames.items[k->frames.nr++] = stack->numbers[i] | (stack->marks[i] ? MARK : 0);
	k->stacks.items[number] = kept;
	return 0;
}

bool kept_stacks__get(const struct kept_stacks *k, uint32_t number, struct frame_list *ret_stack)
{
	const struct kept_stack *stack = find_stack(k, number);

	if (!stack)
		return false;
	ret_stack->nr = stack->nr;
	ret_stack->flags = stack->flags;
	for (uint32_t i = 0; i < stack->nr; i++) {
		ret_stack->numbers[i] = k->frames.items[stack->at + i] & ~MARK;
		ret_stack->marks[i] = k->frames.items[stack->at + i] & MARK;
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
