/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Reads frames and stacks from their chunks. A stack may name frames that come later, or never.
 * Inlined functions have no ids in the file: an id from RECORDING_STACK_IDS on is a source position
 * of a frame.
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
	vec_done(&t->lines);
	vec_done(&t->line_frames);
	hash__done(&t->lines_of);
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

/* ---- inlined functions ---- */

/* The most bytes that inlined functions may add to all stacks: a small file must not grow without
 * bound. */
#define EXPANDED_MAX (64U << 20)

int stack_tables__parse_frame_lines(struct stack_tables *t, struct intern *texts, struct cursor *c)
{
	while (c->left) {
		struct format_frame_lines f = {0};
		size_t at = t->lines.nr;

		take_copy(c, &f, sizeof(f));
		if (!c->ok || f.frame >= RECORDING_STACK_IDS || !f.nr ||
		    f.nr > RECORDING_FRAME_LINES || at >= UINT32_MAX - 2 * RECORDING_STACK_IDS)
			return -EBADMSG;
		for (uint32_t i = 0; i < f.nr; i++) {
			struct recording_line line = {0};

			take_copy(c, &line.line, sizeof(line.line));
			line.function = take_string(texts, c);
			line.file = line.function ? take_string(texts, c) : NULL;
			if (!line.file)
				return take_error(c);
			if (vec_push(&t->lines, line) || vec_push(&t->line_frames, f.frame))
				return -ENOMEM;
		}
		if (hash__set(&t->lines_of, f.frame, (uint64_t)at << 8 | f.nr))
			return -ENOMEM;
	}
	return 0;
}

/* Finds the places of a frame: the first one's index, and how many; 0: not known. */
static size_t lines_of(const struct stack_tables *t, uint32_t id, size_t *ret_at)
{
	const uint64_t *known = hash__find(&t->lines_of, id);

	*ret_at = known ? *known >> 8 : 0;
	return known ? *known & 0xff : 0;
}

const struct recording_line *stack_tables__frame_lines(const struct stack_tables *t, uint32_t id,
						       size_t *ret_nr)
{
	size_t at, nr = lines_of(t, id, &at);

	*ret_nr = nr;
	return nr ? &t->lines.items[at] : NULL;
}

static uint32_t expanded_nr(const struct stack_tables *t, const struct stack_entry *s)
{
	size_t nr = 0, at;

	for (uint32_t i = 0; i < s->nr; i++) {
		size_t lines_nr = lines_of(t, t->frame_ids.items[s->at + i], &at);

		nr += lines_nr ? lines_nr : 1;
	}
	return nr > RECORDING_STACK_FRAMES ? s->nr : (uint32_t)nr;
}

/* Appends the frames at the end. */
static int expand(struct stack_tables *t, struct stack_entry *s, uint32_t nr)
{
	size_t from = s->at;

	if (vec_reserve(&t->frame_ids, nr))
		return -ENOMEM;
	s->at = t->frame_ids.nr;
	for (uint32_t i = 0; i < s->nr; i++) {
		uint32_t id = t->frame_ids.items[from + i];
		size_t at, lines_nr = lines_of(t, id, &at);

		for (size_t k = 0; k + 1 < lines_nr; k++)
			t->frame_ids.items[t->frame_ids.nr++] =
				RECORDING_STACK_IDS + (uint32_t)(at + k);
		t->frame_ids.items[t->frame_ids.nr++] = id;
	}
	s->nr = nr;
	return 0;
}

int stack_tables__expand(struct stack_tables *t)
{
	size_t bytes = 0;
	int err = 0;

	for (size_t i = 0; t->lines.nr && i < t->stacks.nr && !err; i++) {
		struct stack_entry *s = &t->stacks.items[i];
		uint32_t nr = expanded_nr(t, s);

		if (nr == s->nr)
			continue;
		bytes += nr * sizeof(uint32_t);
		if (bytes > EXPANDED_MAX)
			break;
		err = expand(t, s, nr);
	}
	return err;
}

/* Finds the place of an inlined function in its frame. */
static struct recording_frame inlined_frame(struct recording_frame in,
					    const struct recording_line *line)
{
	in.function = line->function;
	in.file = line->file;
	in.line = line->line;
	in.inlined = true;
	return in;
}

struct recording_frame stack_tables__frame(const struct stack_tables *t, uint32_t id)
{
	static const struct recording_frame none = {
		.file = "?", .function = "?", .module = "", .build_id = ""};
	const struct recording_line *line = NULL;
	const uint64_t *i;
	struct recording_frame f;
	size_t at, nr;

	if (id >= RECORDING_STACK_IDS && id - RECORDING_STACK_IDS < t->lines.nr) {
		line = &t->lines.items[id - RECORDING_STACK_IDS];
		id = t->line_frames.items[id - RECORDING_STACK_IDS];
	}
	i = hash__find(&t->frame_of, id);
	f = i ? t->frames.items[*i] : none;
	if (line)
		return inlined_frame(f, line);
	nr = lines_of(t, id, &at);
	if (!nr || f.kind != RECORDING_FRAME_NATIVE)
		return f;
	line = &t->lines.items[at + nr - 1];
	f.function = *f.function ? f.function : line->function;
	f.file = line->file;
	f.line = line->line;
	return f;
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
