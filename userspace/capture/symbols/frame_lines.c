/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Frames of one file are asked for together: each file is read in a process of its own.
 */
#include "capture/symbols/frame_lines.h"

#include "base/cleanup.h"
#include "base/demangle.h"
#include "inspect/elf/line_reader.h"

#include <errno.h>
#include <stdlib.h>

void frame_lines__done(struct frame_lines *l)
{
	vec_done(&l->waiting);
	buf__done(&l->text);
}

int frame_lines__note(struct frame_lines *l, uint32_t frame, const struct native_place *place)
{
	struct waiting_frame w = {frame, place->module, place->address};

	return place->path[0] ? vec_push(&l->waiting, w) : 0;
}

/* As people read it. NULL: out of memory. */
static const char *readable(struct frame_lines *l, struct stacks *s, const char *name)
{
	buf__clear(&l->text);
	demangle_or_keep(&l->text, name);
	return buf__error(&l->text) ? NULL : intern__str(s->texts, l->text.bytes);
}

static int set_lines(struct frame_lines *l, struct stacks *s, uint32_t frame,
		     const struct line_place *places, size_t nr)
{
	struct recording_line lines[LINES_PLACES_MAX];
	bool named = s->frames.items[frame - 1].frame.function[0];

	for (size_t i = 0; i < nr; i++) {
		const char *name = places[i].function;

		lines[i] = (struct recording_line){
			.function = "",
			.file = places[i].file ? places[i].file : "",
			.line = places[i].line,
		};
		if (name && (i + 1 < nr || !named))
			lines[i].function = readable(l, s, name);
		if (!lines[i].function)
			return -ENOMEM;
	}
	return stacks__set_lines(s, frame, lines, nr);
}

/* Frames of one module. */
struct asking {
	struct frame_lines *l;
	struct stacks *s;
	const struct waiting_frame *frames;
};

static int take_lines(size_t i, const struct line_place *places, size_t nr, void *arg)
{
	const struct asking *a = arg;

	return set_lines(a->l, a->s, a->frames[i].frame, places, nr);
}

static int by_module(const void *a, const void *b)
{
	const struct waiting_frame *x = a, *y = b;

	if (x->module != y->module)
		return x->module < y->module ? -1 : 1;
	return x->frame < y->frame ? -1 : x->frame > y->frame;
}

/* Of so many frames of one module. 0 or -errno. */
static int ask(struct frame_lines *l, struct stacks *s, const struct elf_file *f,
	       const struct waiting_frame *frames, size_t nr, uint64_t budget_ns)
{
	CLEANUP(cleanup_free) uint64_t *addresses = calloc(nr, sizeof(*addresses));
	struct asking a = {l, s, frames};
	size_t asked = 0;
	int err;

	if (!addresses)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++)
		addresses[i] = frames[i].address;
	err = line_reader_ask(f, addresses, nr, budget_ns, take_lines, &a, &asked);
	l->left_nr += nr - asked;
	/* That there was no process for it is no reason to end. */
	return err == -EAGAIN || err == -EMFILE || err == -ENFILE || err == -EFBIG ? 0 : err;
}

int frame_lines__find(struct frame_lines *l, struct native_codes *codes, struct stacks *s,
		      uint64_t budget_ns)
{
	size_t nr = l->waiting.nr;
	int err = 0;

	if (nr)
		qsort(l->waiting.items, nr, sizeof(*l->waiting.items), by_module);
	for (size_t i = 0, end; i < nr && !err; i = end) {
		const struct waiting_frame *first = &l->waiting.items[i];
		const struct elf_file *f = native_codes__lines_file(codes, first->module);

		for (end = i + 1; end < nr && l->waiting.items[end].module == first->module;)
			end++;
		if (f)
			err = ask(l, s, f, first, end - i, budget_ns);
	}
	l->waiting.nr = 0;
	return err;
}
