/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * See compensate.h.
 */
#include "timeline/compensate.h"

#include <errno.h>
#include <stdlib.h>

#include "base/banned.h"

/* Callbacks that took longer were not timed: whoever says so lies. */
#define CALLBACK_NS_MAX 20000

#define CALLBACKS_OF_OP 2

static uint64_t told(const struct timeline *t, const char *key)
{
	const char *text = recording__meta(t->recording, key);

	return text ? strtoull(text, NULL, 10) : 0;
}

/* Children stand after their parents. */
static void count(const struct timeline *t, struct compensated *ops)
{
	for (size_t i = t->ops.nr; i-- > 0;) {
		const struct tl_op *op = &t->ops.items[i];
		uint32_t own = (op->flags & GP_OP_CALLBACK) && !op->step;

		if (op->parent == TL_NONE)
			continue;
		ops[op->parent].self_nr += own;
		ops[op->parent].all_nr += own + ops[i].all_nr;
	}
}

int compensation__find(const struct timeline *t, struct reason *why, struct compensation *ret)
{
	struct compensation c = {.callback_ns = told(t, "callback_ns"),
				 .timed_nr = told(t, "callback_timed")};

	if (!c.timed_nr || !c.callback_ns || c.callback_ns > CALLBACK_NS_MAX)
		return reason_set(why, -EINVAL,
				  "the recording does not tell what callbacks of operators took: "
				  "there were none (--no-inject), too few, or it was put together "
				  "from several");
	c.ops = calloc(t->ops.nr + 1, sizeof(*c.ops));
	if (!c.ops)
		return reason_set(why, -ENOMEM, "out of memory");
	count(t, c.ops);
	*ret = c;
	return 0;
}

void compensation__done(struct compensation *c)
{
	free(c->ops);
	c->ops = NULL;
}

static int64_t less(const struct compensation *c, uint64_t ns, uint32_t ops_nr)
{
	return (int64_t)ns - (int64_t)(CALLBACKS_OF_OP * c->callback_ns * ops_nr);
}

int64_t compensation__self_ns(const struct compensation *c, const struct timeline *t, uint32_t op)
{
	return less(c, t->ops.items[op].self_ns, c->ops ? c->ops[op].self_nr : 0);
}

int64_t compensation__total_ns(const struct compensation *c, const struct timeline *t, uint32_t op)
{
	const struct tl_op *o = &t->ops.items[op];

	return less(c, o->end_ns - o->start_ns, c->ops ? c->ops[op].all_nr : 0);
}
