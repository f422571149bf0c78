/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Samples in the Chrome trace. A thread that was on a CPU is an instant event. A wait that was
 * sampled several times is a slice: it lasted at least from the first sample to the last.
 */
#include "output/chrome/chrome.h"
#include "output/format/stack_text.h"

#include "base/banned.h"

static void stack_arg(struct chrome *c, const struct tl_sampled_stack *stack)
{
	const struct tl_stack s = {
		.id = stack->id, .flags = stack->flags, .nr = stack->nr, .frames = stack->frames};
	struct buf text = {0};

	stack_text_all(&text, c->t->recording, &s);
	json__put_text(&c->json, "Call stack", text.bytes ? text.bytes : "");
	if (!c->out.err)
		c->out.err = buf__error(&text);
	buf__done(&text);
}

static void sample_args(struct chrome *c, const struct tl_sample *s,
			const struct tl_sampled_stack *stack)
{
	chrome_begin_args(c);
	json__put_u64(&c->json, "Samples", s->nr);
	json__put_us(&c->json, "Estimated us", (int64_t)s->weight_ns);
	if (stack->ops_nr)
		json__put_text(&c->json, "Operator", c->t->stack_ops.items[stack->ops_at].name);
	if (stack->nr)
		stack_arg(c, stack);
	chrome_end_args(c);
}

static void one_sample(struct chrome *c, const struct tl_sample *s)
{
	const struct tl_sampled_stack *stack = &c->t->sampled_stacks.items[s->stack];
	bool runs = s->flags & GP_SAMPLE_RUNNING, lasts = s->end_ns > s->start_ns;

	chrome_begin(c);
	json__put_word(&c->json, "ph", lasts ? "X" : "i");
	json__put_word(&c->json, "cat", "sample");
	if (!lasts)
		json__put_word(&c->json, "s", "t");
	json__put_text(&c->json, "name",
		       runs && stack->ops_nr ? c->t->stack_ops.items[stack->ops_at].name
					     : timeline__activity(c->t, s));
	chrome_where(c, s->thread, s->start_ns);
	if (lasts)
		chrome_duration(c, s->start_ns, s->end_ns);
	sample_args(c, s, stack);
}

int chrome_samples(struct chrome *c)
{
	int err = 0;

	for (size_t i = 0; i < c->t->samples.nr && !err; i++) {
		if (chrome_shows_thread(c, c->t->samples.items[i].thread))
			one_sample(c, &c->t->samples.items[i]);
		err = chrome_drain(c, false);
	}
	return err;
}
