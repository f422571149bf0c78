/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * See stack_text.h.
 */
#include "output/format/stack_text.h"

#include <string.h>

#include "base/banned.h"
#include "base/cleanup.h"
#include "base/file.h"

static void module(struct buf *out, const struct recording_frame *f)
{
	buf__str(out, *f->module ? file_base_name(f->module) : "?");
}

void stack_text_function(struct buf *out, const struct recording_frame *f)
{
	if (*f->function || f->kind == RECORDING_FRAME_PYTHON)
		buf__str(out, f->function);
	else
		buf__printf(out, "0x%llx", (unsigned long long)f->address);
	if (f->inlined)
		buf__str(out, " (inlined)");
}

static void add_frame(struct buf *out, const struct recording_frame *f)
{
	if (f->kind == RECORDING_FRAME_PYTHON || *f->file) {
		buf__str(out, f->file);
		buf__char(out, '(');
		buf__u64(out, f->line);
		buf__str(out, "): ");
	} else if (f->kind == RECORDING_FRAME_NATIVE || !*f->function) {
		module(out, f);
		buf__str(out, ": ");
	}
	stack_text_function(out, f);
	if (f->kind == RECORDING_FRAME_KERNEL && *f->module && strcmp(f->module, "[kernel]") != 0)
		buf__printf(out, " %s", f->module);
	/* What scripts for flame graphs colour as the kernel. */
	if (f->kind == RECORDING_FRAME_KERNEL)
		buf__str(out, " [k]");
}

void stack_text_frame(struct buf *out, const struct recording *rec, uint32_t frame)
{
	struct recording_frame f = recording__frame(rec, frame);

	add_frame(out, &f);
}

void stack_text_by_function(struct buf *out, const struct recording *rec, uint32_t frame)
{
	struct recording_frame f = recording__frame(rec, frame);

	if (f.kind == RECORDING_FRAME_NATIVE)
		f.file = "";
	add_frame(out, &f);
}

void stack_text_json(struct json_writer *j, const struct recording *rec, const uint32_t *frames,
		     size_t nr)
{
	CLEANUP(buf__done) struct buf frame = {0};

	json__array(j, &json_spaced);
	for (size_t i = 0; i < nr; i++) {
		buf__clear(&frame);
		stack_text_frame(&frame, rec, frames[i]);
		json__text(j, frame.bytes ? frame.bytes : "");
	}
	json__end(j);
	if (!j->out->err)
		j->out->err = buf__error(&frame);
}

void stack_text_folded(struct buf *out, struct buf *scratch, const struct recording *rec,
		       uint32_t frame)
{
	buf__clear(scratch);
	stack_text_by_function(scratch, rec, frame);
	buf__folded(out, scratch->bytes ? scratch->bytes : "");
}

void stack_text_in_list(struct buf *out, struct buf *scratch, const struct recording *rec,
			uint32_t frame)
{
	buf__clear(scratch);
	stack_text_frame(scratch, rec, frame);
	buf__list_item(out, scratch->bytes ? scratch->bytes : "");
}

void stack_text_all(struct buf *out, const struct recording *rec, const struct tl_stack *s)
{
	CLEANUP(buf__done) struct buf frame = {0};

	if (stack_text_mark(s->flags))
		buf__printf(out, "%s;", stack_text_mark(s->flags));
	for (size_t i = s->nr; i-- > 0;) {
		stack_text_in_list(out, &frame, rec, s->frames[i]);
		buf__str(out, i ? ";" : "");
	}
	if (!out->err)
		out->err = buf__error(&frame);
}

void stack_text_call(struct buf *out, const struct timeline *t, const struct tl_python_call *call)
{
	if (call->module_call != TL_NONE) {
		uint32_t module = t->module_calls.items[call->module_call].module;

		buf__str(out, t->modules.items[module].name);
	} else {
		struct recording_frame f = recording__frame(t->recording, call->frame);

		buf__printf(out, "%s(%u): %s", f.file, f.first_line, f.function);
	}
}

const char *stack_text_mark(uint32_t flags)
{
	if (flags & GP_STACK_INCOMPLETE)
		return "[incomplete]";
	return flags & GP_STACK_TRUNCATED ? "[truncated]" : NULL;
}
