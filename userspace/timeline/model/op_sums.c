/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What is added up over ops. Most recordings are of operators alone, very many of them: those need
 * no room for bytes, GPU time and floating-point operations of each.
 */
#include "base/banned.h"
#include "timeline/model/build.h"

struct tl_op_sums *build_op_sums(struct build *b)
{
	struct timeline *t = b->t;

	if (t->op_sums.items)
		return t->op_sums.items;
	/* One more: with no op at all it is there, too. */
	t->op_sums.items = calloc(t->ops.nr + 1, sizeof(*t->op_sums.items));
	if (t->op_sums.items)
		t->op_sums.nr = t->op_sums.cap = t->ops.nr;
	return t->op_sums.items;
}

const struct tl_op_sums *timeline__op_sums(const struct timeline *t, size_t op)
{
	static const struct tl_op_sums none;

	return op < t->op_sums.nr ? &t->op_sums.items[op] : &none;
}
