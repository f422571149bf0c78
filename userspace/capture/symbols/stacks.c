/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Turns code addresses into numbered frames. A frame without a name is frame 0, which no recording
 * describes: a reader shows it as "?", and the stack is marked.
 */
#include "capture/symbols/stacks.h"

#include "capture/symbols/python_code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int stacks__init(struct stacks *s, const struct segments *segments, const struct names *names)
{
	*s = (struct stacks){
		.segments = segments,
		.names = names,
		.texts = intern__new(),
		.now = {.first = 1, .last = RECORDING_STACK_IDS - 1},
	};
	return s->texts ? 0 : -ENOMEM;
}

static void numbers_done(struct stack_numbers *n)
{
	hash__done(&n->number_of);
	kept_stacks__done(&n->kept);
}

void stacks__done(struct stacks *s)
{
	hash__done(&s->frame_of);
	numbers_done(&s->now);
	numbers_done(&s->before);
	for (size_t i = 0; i < s->frames.nr; i++)
		free(s->frames.items[i].lines);
	vec_done(&s->frames);
	intern__free(s->texts);
	s->texts = NULL;
}

int64_t stacks__number(struct stacks *s, uint32_t source, uint32_t id)
{
	uint64_t key = source_key(source, id);
	const uint64_t *known = id ? hash__find(&s->now.number_of, key) : NULL;
	int err;

	if (id && !known)
		known = hash__find(&s->before.number_of, key);
	if (known || !id)
		return known ? (int64_t)*known : 0;
	if (s->stacks_nr >= s->now.last) {
		s->numbers_lost_nr++;
		return 0;
	}
	err = hash__set(&s->now.number_of, key, s->stacks_nr + 1);
	return err ? (int64_t)err : (int64_t)++s->stacks_nr;
}

void stacks__forget(struct stacks *s, uint32_t source)
{
	hash__delete_high(&s->now.number_of, source);
	hash__delete_high(&s->before.number_of, source);
}

static bool is_now(const struct stacks *s, uint32_t number)
{
	return number >= s->now.first && number <= s->now.last;
}

bool stacks__get(const struct stacks *s, uint32_t number, struct frame_list *ret_list)
{
	const struct stack_numbers *n = is_now(s, number) ? &s->now : &s->before;

	return number >= n->first && kept_stacks__get(&n->kept, number - n->first, ret_list);
}

/* A third of all numbers each: one recording may have those of the one before and after it. */
void stacks__poll(struct stacks *s)
{
	const uint32_t third = (RECORDING_STACK_IDS - 1) / 3;
	uint32_t first = 1 + (s->now.first / third + 1) % 3 * third;

	numbers_done(&s->before);
	s->before = s->now;
	s->now = (struct stack_numbers){.first = first, .last = first + third - 1};
	s->stacks_nr = first - 1;
}

/* ---- into recordings ---- */

static int emit_frame(const struct stacks *s, struct segment *to, uint32_t number)
{
	const struct numbered_frame *f;
	int err;

	if (!number || bits__has(&to->frames, number))
		return 0;
	f = &s->frames.items[number - 1];
	err = bits__set(&to->frames, number);
	err = err ? err : recording_writer__frame(to->writer, number, &f->frame);
	if (!err && f->lines)
		err = recording_writer__frame_lines(to->writer, number, f->lines, f->lines_nr);
	if (err || !f->op)
		return err;
	err = names__emit(s->names, to, f->op);
	return err ? err : recording_writer__frame_op(to->writer, number, f->op, f->scope);
}

static int write_stack(const struct stacks *s, struct segment *to, uint32_t number,
		       const struct frame_list *list)
{
	int err = 0;

	for (uint32_t i = 0; i < list->nr && !err; i++)
		err = emit_frame(s, to, list->numbers[i]);
	return err ? err
		   : recording_writer__stack(to->writer, number, list->flags, list->numbers,
					     list->nr);
}

int stacks__emit(struct stacks *s, struct segment *to, uint32_t number)
{
	struct frame_list list;
	int err;

	if (!number || bits__has(&to->stacks, number))
		return 0;
	err = bits__set(&to->stacks, number);
	if (err || !stacks__get(s, number, &list))
		return err;
	return write_stack(s, to, number, &list);
}

int stacks__keep(struct stacks *s, uint32_t number, const struct frame_list *list)
{
	struct segment *const open[] = {s->segments->current, s->segments->draining};
	struct stack_numbers *n = is_now(s, number) ? &s->now : &s->before;
	int err = kept_stacks__add(&n->kept, number - n->first, list);

	if (err == -ENOSPC)
		s->numbers_lost_nr++;
	if (err)
		return err == -ENOSPC || err == -EEXIST ? 0 : err;
	for (int i = 0; i < 2 && !err; i++)
		if (open[i] && !open[i]->broken && bits__has(&open[i]->stacks, number))
			err = write_stack(s, open[i], number, list);
	return err;
}

/* ---- frames ---- */

int64_t stacks__add_frame(struct stacks *s, const struct recording_frame *frame)
{
	struct numbered_frame f = {.frame = *frame};
	struct recording_frame *copy = &f.frame;

	if (s->frames.nr + 1 >= RECORDING_STACK_IDS)
		return 0;
	copy->file = intern__str(s->texts, frame->file ? frame->file : "");
	copy->function = intern__str(s->texts, frame->function ? frame->function : "");
	copy->module = intern__str(s->texts, frame->module ? frame->module : "");
	copy->build_id = intern__str(s->texts, frame->build_id ? frame->build_id : "");
	if (!copy->file || !copy->function || !copy->module || !copy->build_id ||
	    vec_push(&s->frames, f))
		return -ENOMEM;
	return (int64_t)s->frames.nr;
}

void stacks__set_op(struct stacks *s, uint32_t frame, uint32_t op, uint32_t scope)
{
	struct numbered_frame *f = &s->frames.items[frame - 1];

	f->op = op;
	f->scope = scope;
}

static int copy_lines(struct stacks *s, const struct recording_line *lines, size_t nr,
		      struct recording_line **ret_lines)
{
	struct recording_line *copy = calloc(nr, sizeof(*copy));

	for (size_t i = 0; copy && i < nr; i++) {
		copy[i].line = lines[i].line;
		copy[i].function = intern__str(s->texts, lines[i].function);
		copy[i].file = intern__str(s->texts, lines[i].file);
		if (copy[i].function && copy[i].file)
			continue;
		free(copy);
		copy = NULL;
	}
	*ret_lines = copy;
	return copy ? 0 : -ENOMEM;
}

int stacks__set_lines(struct stacks *s, uint32_t frame, const struct recording_line *lines,
		      size_t nr)
{
	struct segment *const open[] = {s->segments->current, s->segments->draining};
	struct numbered_frame *f = &s->frames.items[frame - 1];
	int err = copy_lines(s, lines, nr, &f->lines);

	f->lines_nr = (uint32_t)nr;
	for (int i = 0; i < 2 && !err; i++)
		if (open[i] && !open[i]->broken && bits__has(&open[i]->frames, frame))
			err = recording_writer__frame_lines(open[i]->writer, frame, f->lines, nr);
	return err;
}

/* Two keys for one place are two frames that look the same; one key for two places cannot be: the
 * parts do not overlap. */
static uint64_t place_key(uint32_t code, int32_t lasti)
{
	return (uint64_t)(code & 0xfffff) << 28 | ((uint32_t)lasti & 0xfffffff);
}

/* The same line of the same function is one frame, whichever process it is in: a program may have
 * any number of children. Two with the same 64-bit hash would be one, too: see names.c. */
static uint64_t frame_key(const struct python_place *place)
{
	uint64_t lines = (uint64_t)place->first_line << 32 | place->line;
	uint64_t key = hash_mix(hash_bytes(place->file, strlen(place->file)) ^ lines);

	return hash_mix(key) ^ hash_bytes(place->function, strlen(place->function));
}

/* As stacks__add_frame(). */
static int64_t add_python_frame(struct stacks *s, const struct python_place *place)
{
	const struct recording_frame frame = {
		.kind = RECORDING_FRAME_PYTHON,
		.file = place->file,
		.function = place->function,
		.line = place->line,
		.first_line = place->first_line,
	};
	uint64_t key = frame_key(place);
	const uint64_t *known = hash__find(&s->frame_of, key);
	int64_t number = known ? (int64_t)*known : stacks__add_frame(s, &frame);
	int err = known || number <= 0 ? 0 : hash__set(&s->frame_of, key, (uint64_t)number);

	return err ? (int64_t)err : number;
}

/* Number of the frame; 0 if it cannot be named. 0 or -errno. */
static int number_frame(struct stacks *s, struct python_codes *codes,
			const struct gp_stack_frame *frame, uint32_t *ret_number)
{
	struct python_place place;
	struct hash *frame_of;
	const uint64_t *known;
	uint64_t key;
	int64_t number;
	int err = codes ? python_codes__place(codes, frame, &place) : -ENOENT;

	*ret_number = 0;
	if (err)
		return err == -ENOMEM ? err : 0;
	key = place_key(place.code, frame->lasti);
	frame_of = python_codes__frames(codes);
	known = hash__find(frame_of, key);
	if (known) {
		*ret_number = (uint32_t)*known;
		return 0;
	}
	number = add_python_frame(s, &place);
	if (number <= 0)
		return (int)number;
	*ret_number = (uint32_t)number;
	return hash__set(frame_of, key, (uint64_t)number);
}

int stacks__put(struct stacks *s, struct python_codes *codes, uint32_t source,
		const struct gp_ev_stack *event, size_t bytes)
{
	const struct gp_stack_frame *frames = (const void *)(event + 1);
	struct frame_list list = {0};
	int64_t number;
	int err = 0;

	if (bytes < sizeof(*event) || event->frames_nr > GP_STACK_FRAMES ||
	    event->frames_nr > (bytes - sizeof(*event)) / sizeof(*frames) || !event->stack_id)
		return -EBADMSG;
	number = stacks__number(s, source, event->stack_id);
	if (number <= 0)
		return (int)number;
	list.flags = event->head.flags;
	list.nr = event->frames_nr;
	for (uint32_t i = 0; i < list.nr && !err; i++) {
		err = number_frame(s, codes, &frames[i], &list.numbers[i]);
		if (!err && !list.numbers[i])
			list.flags |= GP_STACK_INCOMPLETE;
		list.marks[i] = event->entries[i / 64] >> i % 64 & 1;
	}
	if (list.flags && !event->head.flags)
		s->incomplete_nr++;
	return err ? err : stacks__keep(s, (uint32_t)number, &list);
}
