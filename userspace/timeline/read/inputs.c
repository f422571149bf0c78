/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Reads lists of inputs into the timeline, with their shapes as torch.profiler's table prints them:
 * an input without a shape, also a list of tensors, is "[]"; "..." stands for the part that was cut
 * off.
 */
#include "recording/inputs.h"

#include <errno.h>
#include <string.h>

#include "base/banned.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "timeline/model/build.h"

#define LISTS_MAX (1U << 24)

static void tensor_text(struct buf *b, const struct input *in)
{
	buf__char(b, '[');
	for (unsigned int i = 0; i < in->dims; i++) {
		buf__str(b, i ? ", " : "");
		buf__i64(b, in->sizes[i]);
	}
	buf__char(b, ']');
}

static void shapes_text(struct buf *b, struct tl_inputs *list, const void *data, size_t bytes)
{
	struct inputs_reader r;
	struct input in, item;

	inputs_reader__init(&r, data, bytes);
	buf__char(b, '[');
	while (inputs_reader__next(&r, &in) > 0) {
		list->valueless |= in.what == GP_INPUT_NO_VALUE;
		buf__str(b, b->nr > 1 ? ", " : "");
		if (in.what == GP_INPUT_CUT)
			buf__str(b, "...");
		else
			tensor_text(b, &in);
		for (; in.items && inputs_reader__next(&r, &item) > 0; in.items--)
			list->valueless |= item.what == GP_INPUT_NO_VALUE;
	}
	buf__char(b, ']');
}

static int add_list(struct build *b, uint32_t id, const void *data, size_t bytes)
{
	CLEANUP(buf__done) struct buf text = {0};
	struct tl_inputs in = {.bytes = bytes};

	shapes_text(&text, &in, data, bytes);
	if (buf__error(&text))
		return -ENOMEM;
	in.data = intern__get(b->t->private->intern, data, bytes);
	in.shapes = intern__get(b->t->private->intern, text.bytes, text.nr);
	if (!in.data || !in.shapes || vec_push(&b->t->inputs, in))
		return -ENOMEM;
	return hash__set(&b->inputs.of, id, b->t->inputs.nr - 1);
}

int build_inputs(struct build *b, const struct gp_ev_inputs *e, size_t bytes)
{
	b->inputs.any = true;
	if (e->bytes > bytes - sizeof(*e) || !e->inputs_id || !inputs_are_sane(e + 1, e->bytes) ||
	    hash__find(&b->inputs.of, e->inputs_id) || b->t->inputs.nr >= LISTS_MAX) {
		b->inputs.invalid_nr++;
		return 0;
	}
	return add_list(b, e->inputs_id, e + 1, e->bytes);
}
