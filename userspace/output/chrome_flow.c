/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Arrows from a forward op to its backward. Of several backward ones the first to end counts, as in
 * Kineto.
 */
#include "output/chrome.h"

#include <errno.h>

#include "base/banned.h"

int chrome_flow_find(struct chrome *c)
{
	int err = 0;

	for (uint32_t i = 0; i < c->t->ops.nr && !err; i++) {
		const struct tl_op *op = &c->t->ops.items[i];
		const uint64_t *known;

		if (!tl_op_is_backward(op) || op->forward == TL_NONE)
			continue;
		known = hash__find(&c->flow, op->forward);
		if (!known || c->t->ops.items[*known].end_ns > op->end_ns)
			err = hash__set(&c->flow, op->forward, i);
	}
	return err;
}

static void half(struct chrome *c, const struct tl_op *op, uint32_t forward, bool begins)
{
	chrome_begin(c);
	if (begins)
		chrome_lit(&c->out, "{\"ph\":\"s\",\"id\":");
	else
		chrome_lit(&c->out, "{\"ph\":\"f\",\"bp\":\"e\",\"id\":");
	buf__u64(&c->out, (uint64_t)forward + 1);
	chrome_lit(&c->out, ",\"cat\":\"fwdbwd\",\"name\":\"fwdbwd\"");
	chrome_where(c, op->thread, op->start_ns);
	chrome_lit(&c->out, "}");
}

void chrome_flow_write(struct chrome *c, uint32_t i)
{
	const struct tl_op *op = &c->t->ops.items[i];
	const uint64_t *backward;

	if (!c->flow.nr)
		return;
	if (hash__find(&c->flow, i))
		half(c, op, i, true);
	backward = tl_op_is_backward(op) ? hash__find(&c->flow, op->forward) : NULL;
	if (backward && *backward == i)
		half(c, op, op->forward, false);
}
