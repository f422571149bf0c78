/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Arrows from a forward op to its backward op.
 */
#include "output/chrome/chrome.h"
#include "output/chrome/flow.h"

#include "base/banned.h"

static void half(struct chrome *c, const struct tl_op *op, uint32_t forward, bool begins)
{
	chrome_begin(c);
	json__put_word(&c->json, "ph", begins ? "s" : "f");
	if (!begins)
		json__put_word(&c->json, "bp", "e");
	json__put_u64(&c->json, "id", (uint64_t)forward + 1);
	json__put_word(&c->json, "cat", "fwdbwd");
	json__put_word(&c->json, "name", "fwdbwd");
	chrome_where(c, op->thread, op->start_ns);
	json__end(&c->json);
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
