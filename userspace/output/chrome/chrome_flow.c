/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Arrows from a forward op to its backward.
 */
#include "output/chrome/chrome.h"
#include "output/chrome/flow.h"

#include "base/banned.h"

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

	if (!c->flow.nr)
		return;
	if (flow_begins(&c->flow, i))
		half(c, op, i, true);
	if (flow_ends(c->t, &c->flow, i))
		half(c, op, op->forward, false);
}
