/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The text of one frame.
 */
#include "output/stack_text.h"

#include "base/banned.h"

void stack_text_frame(struct buf *out, const struct recording *rec, uint32_t frame)
{
	struct recording_frame f = recording__frame(rec, frame);

	buf__str(out, f.file);
	buf__char(out, '(');
	buf__u64(out, f.line);
	buf__str(out, "): ");
	buf__str(out, f.function);
}

void stack_text_folded(struct buf *out, const struct recording *rec, uint32_t frame)
{
	size_t at = out->nr;

	stack_text_frame(out, rec, frame);
	for (; !buf__error(out) && at < out->nr; at++) {
		unsigned char c = (unsigned char)out->bytes[at];

		if (c <= ' ' || c == ';' || c == 0x7f)
			out->bytes[at] = '_';
	}
}

const char *stack_text_mark(uint32_t flags)
{
	if (flags & GP_STACK_INCOMPLETE)
		return "[incomplete]";
	return flags & GP_STACK_TRUNCATED ? "[truncated]" : NULL;
}
