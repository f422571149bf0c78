/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * See compensate.h.
 */
#include "timeline/build/compensate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"

/* Longer callbacks are not timed, so a longer mean is a lie. */
#define CALLBACK_NS_MAX 20000

/* The least number of timed callbacks. One of 251 is timed, and their times have a long tail: with
 * fewer the mean would vary by half. */
#define TIMED_MIN 100

#define CALLBACKS_OF_OP 2

#define DIGITS_MAX 18

/* False: the recording lacks it, or it is not a number. */
static bool reported(const struct timeline *t, const char *key, uint64_t *ret)
{
	const char *text = recording__meta(t->recording, key);

	if (!text || !*text || strspn(text, "0123456789") != strlen(text) ||
	    strlen(text) > DIGITS_MAX)
		return false;
	*ret = strtoull(text, NULL, 10);
	return true;
}

static int no_mean(struct reason *why, const char *because)
{
	return reason_set(why, -EINVAL,
			  "the recording does not tell what callbacks of operators took: %s",
			  because);
}

static int find_mean(const struct timeline *t, struct reason *why, struct compensation *c)
{
	const struct recording *rec = t->recording;
	uint64_t ops_nr = 0;

	if (recording__meta(rec, "merged"))
		return no_mean(why, "it was put together from several, which had a mean each; "
				    "give those");
	if (!recording__meta(rec, "callback_timed"))
		return no_mean(why, recording__damage(rec) ? "its end, which has that, is missing"
							   : "it is older than that");
	if (recording__meta(rec, "overhead_pct"))
		return no_mean(why, "those that were timed are also of the time between the "
				    "windows of --overhead; record without it");
	if (recording__meta(rec, "steps"))
		return no_mean(why, "those that were timed are also of the time before its steps; "
				    "record without --steps and --schedule");
	if (!reported(t, "callback_timed", &c->timed_nr) ||
	    (c->timed_nr && (!reported(t, "callback_ns", &c->callback_ns) || !c->callback_ns ||
			     c->callback_ns > CALLBACK_NS_MAX)))
		return no_mean(why, "what it has in that place is no time of one");
	if (!c->timed_nr && reported(t, "callback_ops", &ops_nr) && !ops_nr)
		return no_mean(why, "there were none, its operators came from probes; attach to "
				    "the process once it runs, without --no-inject, --ops and "
				    "native stacks");
	if (c->timed_nr < TIMED_MIN)
		return reason_set(why, -EINVAL,
				  "the recording does not tell what callbacks of operators took: "
				  "%llu were timed, too few for a mean; record for longer",
				  (unsigned long long)c->timed_nr);
	return 0;
}

/* Children come after their parents. */
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
	struct compensation c = {0};
	int err = find_mean(t, why, &c);

	if (err)
		return err;
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
