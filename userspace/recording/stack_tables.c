/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Frames and stacks out of their chunks. A stack may name frames that come later, or never.
 */
#include "recording/stack_tables.h"

#include "recording/format.h"
#include "recording/tables.h"

void stack_tables__done(struct stack_tables *t)
{
	vec_done(&t->frames);
	hash__done(&t->frame_of);
	vec_done(&t->stacks);
	hash__done(&t->stack_of);
	vec_done(&t->frame_ids);
	hash__done(&t->op_of);
}

static int put_frame(struct stack_tables *t, uint32_t id, struct recording_frame frame)
{
	size_t i;

	if (index_of(&t->frame_of, id, t->frames.nr, &i) || vec_put(&t->frames, i, frame))
		return -ENOMEM;
	return 0;
}

int stack_tables__parse_frames(struct stack_tables *t, struct intern *texts, struct cursor *c)
{
	while (c->left) {
		struct recording_frame frame = {.module = "", .build_id = ""};
		struct format_frame f = {0};

		take_copy(c, &f, sizeof(f));
		if (f.id >= RECORDING_STACK_IDS)
			return -EBADMSG;
		frame.line = f.line;
		frame.file = take_string(texts, c);
		frame.function = frame.file ? take_string(texts, c) : NULL;
		if (!frame.function)
			return take_error(c);
		if (put_frame(t, f.id, frame))
			return -ENOMEM;
	}
	return 0;
}

int stack_tables__parse_native_frames(struct stack_tables *t, struct intern *texts,
				      struct cursor *c)
{
	while (c->left) {
		struct format_native_frame f = {0};
		struct recording_frame frame = {0};

		take_copy(c, &f, sizeof(f));
		if (f.id >= RECORDING_STACK_IDS ||
		    (f.kind != RECORDING_FRAME_NATIVE && f.kind != RECORDING_FRAME_KERNEL))
			return -EBADMSG;
		frame.kind = f.kind;
		frame.address = f.address;
		frame.line = f.line;
		frame.module = take_string(texts, c);
		frame.build_id = frame.module ? take_string(texts, c) : NULL;
		frame.function = frame.build_id ? take_string(texts, c) : NULL;
		frame.file = frame.function ? take_string(texts, c) : NULL;
		if (!frame.file)
			return take_error(c);
		if (put_frame(t, f.id, frame))
			return -ENOMEM;
	}
	return 0;
}

int stack_tables__parse_stacks(struct stack_tables *t, struct cursor *c)
{
	while (c->left) {
		struct format_stack f = {0};
		struct stack_entry stack;
		const void *ids;
		size_t i;

		take_copy(c, &f, sizeof(f));
		if (f.id >= RECORDING_STACK_IDS || f.nr > RECORDING_STACK_FRAMES)
			return -EBADMSG;
		ids = take(c, f.nr * sizeof(uint32_t));
		if (!ids)
			return -EBADMSG;
		stack = (struct stack_entry){.at = t->frame_ids.nr, .nr = f.nr, .flags = f.flags};
		if (vec_reserve(&t->frame_ids, f.nr + 1UL) ||
		    index_of(&t->stack_of, f.id, t->stacks.nr, &i) || vec_put(&t->stacks, i, stack))
			return -ENOMEM;
		memcpy(t->frame_ids.items + stack.at, ids, f.nr * sizeof(uint32_t));
		t->frame_ids.nr += f.nr;
	}
	return 0;
}

int stack_tables__parse_frame_ops(struct stack_tables *t, struct cursor *c)
{
	while (c->left) {
		struct format_frame_op f = {0};

		take_copy(c, &f, sizeof(f));
		if (!c->ok || f.frame >= RECORDING_STACK_IDS || f.name >= RECORDING_NAME_IDS)
			return -EBADMSG;
		if (hash__set(&t->op_of, f.frame, (uint64_t)f.scope << 32 | f.name))
			return -ENOMEM;
	}
	return 0;
}

int stack_tables__parse_first_lines(struct stack_tables *t, struct cursor *c)
{
	while (c->left) {
		struct format_first_line f = {0};
		const uint64_t *i;

		take_copy(c, &f, sizeof(f));
		if (!c->ok || f.frame >= RECORDING_STACK_IDS)
			return -EBADMSG;
		i = hash__find(&t->frame_of, f.frame);
		if (i)
			t->frames.items[*i].first_line = f.line;
	}
	return 0;
}

bool stack_tables__frame_op(const struct stack_tables *t, uint32_t id, uint32_t *ret_name,
			    uint32_t *ret_scope)
{
	const uint64_t *op = hash__find(&t->op_of, id);

	if (!op)
		return false;
	*ret_name = (uint32_t)*op;
	*ret_scope = (uint32_t)(*op >> 32);
	return true;
}

struct recording_frame stack_tables__frame(const struct stack_tables *t, uint32_t id)
{
	static const struct recording_frame none = {
		.file = "?", .function = "?", .module = "", .build_id = ""};
	const uint64_t *i = hash__find(&t->frame_of, id);

	return i ? t->frames.items[*i] : none;
}

const uint32_t *stack_tables__stack(const struct stack_tables *t, uint32_t id, size_t *ret_nr,
				    uint32_t *ret_flags)
{
	const uint64_t *i = hash__find(&t->stack_of, id);
	const struct stack_entry *s = i ? &t->stacks.items[*i] : NULL;

	*ret_nr = s ? s->nr : 0;
	if (ret_flags)
		*ret_flags = s ? s->flags : 0;
	return s ? t->frame_ids.items + s->at : NULL;
}
