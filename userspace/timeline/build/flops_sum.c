/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Sums floating-point operations over the tree. torch.profiler's numbers stay at the op itself.
 * Ours count each product once, at the innermost op with a formula, and go up from there.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/banned.h"
#include "common/saturating.h"
#include "timeline/build/flops.h"
#include "timeline/model/build.h"

/* What ops of one name with one list of inputs compute. */
struct known_flops {
	struct hash place_of;
	VEC(struct flops) items;
	struct hash formula_of; /* name -> whether there is one */
};

static void known_flops__done(struct known_flops *k)
{
	hash__done(&k->place_of);
	hash__done(&k->formula_of);
	vec_done(&k->items);
}

/* Most names have no formula. Names are interned, so the search runs once per name. */
static int has_formula(struct known_flops *k, const char *name)
{
	const uint64_t *known = hash__find(&k->formula_of, (uintptr_t)name);
	int has;

	if (known)
		return (int)*known;
	has = flops_known(name);
	return hash__set(&k->formula_of, (uintptr_t)name, (uint64_t)has) ? -ENOMEM : has;
}

static int look_up(struct known_flops *k, const struct timeline *t, const struct tl_op *op,
		   struct flops *ret_flops)
{
	const struct tl_inputs *in;
	uint64_t key = hash_mix((uintptr_t)op->name) + op->inputs;
	const uint64_t *known;
	int has = op->inputs == TL_NONE ? 0 : has_formula(k, op->name);

	*ret_flops = (struct flops){0};
	if (has <= 0)
		return has;
	known = hash__find(&k->place_of, key);
	if (known) {
		*ret_flops = k->items.items[*known];
		return 0;
	}
	in = &t->inputs.items[op->inputs];
	*ret_flops = flops_of(op->name, in->data, in->bytes);
	if (hash__set(&k->place_of, key, k->items.nr) || vec_push(&k->items, *ret_flops))
		return -ENOMEM;
	return 0;
}

int build_flops(struct build *b)
{
	struct timeline *t = b->t;
	struct known_flops known = {0};
	struct tl_op_sums *sums;
	int err = 0;

	if (!b->inputs.any)
		return 0;
	sums = build_op_sums(b);
	if (!sums)
		return -ENOMEM;
	/* Children come after their parents. */
	for (size_t i = t->ops.nr; i-- > 0 && !err;) {
		const struct tl_op *op = &t->ops.items[i];
		uint64_t *above =
			op->parent == TL_NONE ? &t->all_flops : &sums[op->parent].all_flops;
		struct flops flops;

		err = look_up(&known, t, op, &flops);
		if (err)
			break;
		sums[i].flops = flops.torch;
		if (!sums[i].all_flops)
			sums[i].all_flops = flops.own;
		*above = add_saturating(*above, sums[i].all_flops);
	}
	known_flops__done(&known);
	return err;
}
