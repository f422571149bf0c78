/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * See flow.h.
 */
#include "output/chrome/flow.h"

#include <errno.h>

#include "base/banned.h"

int flow_find(const struct timeline *t, struct hash *backward_of)
{
	int err = 0;

	for (uint32_t i = 0; i < t->ops.nr && !err; i++) {
		const struct tl_op *op = &t->ops.items[i];
		const uint64_t *known;

		if (!tl_op_is_backward(op) || op->forward == TL_NONE)
			continue;
		known = hash__find(backward_of, op->forward);
		if (!known || t->ops.items[*known].end_ns > op->end_ns)
			err = hash__set(backward_of, op->forward, i);
	}
	return err;
}

bool flow_begins(const struct hash *backward_of, uint32_t op)
{
	return hash__find(backward_of, op);
}

bool flow_ends(const struct timeline *t, const struct hash *backward_of, uint32_t op)
{
	const struct tl_op *o = &t->ops.items[op];
	const uint64_t *backward =
		tl_op_is_backward(o) ? hash__find(backward_of, o->forward) : NULL;

	return backward && *backward == op;
}
