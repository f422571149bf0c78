/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Samples in the Chrome trace: a thread on a CPU was found so at one moment; a wait in which it was
 * found several times lasted at least from the first to the last of them.
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
	chrome_lit(&c->out, ",\"Call stack\":");
	buf__json(&c->out, text.bytes ? text.bytes : "");
	if (!c->out.err)
		c->out.err = buf__error(&text);
	buf__done(&text);
}

static void sample_args(struct chrome *c, const struct tl_sample *s,
			const struct tl_sampled_stack *stack)
{
	chrome_lit(&c->out, ",\"args\":{\"Samples\":");
	buf__u64(&c->out, s->nr);
	chrome_lit(&c->out, ",\"Estimated us\":");
	buf__us(&c->out, (int64_t)s->weight_ns);
	if (stack->ops_nr) {
		chrome_lit(&c->out, ",\"Operator\":");
		buf__json(&c->out, c->t->stack_ops.items[stack->ops_at].name);
	}
	if (stack->nr)
		stack_arg(c, stack);
	chrome_lit(&c->out, "}}");
}

static void one_sample(struct chrome *c, const struct tl_sample *s)
{
	const struct tl_sampled_stack *stack = &c->t->sampled_stacks.items[s->stack];
	bool runs = s->flags & GP_SAMPLE_RUNNING;

	chrome_begin(c);
	if (s->end_ns > s->start_ns)
		chrome_lit(&c->out, "{\"ph\":\"X\",\"cat\":\"sample\",\"name\":");
	else
		chrome_lit(&c->out, "{\"ph\":\"i\",\"cat\":\"sample\",\"s\":\"t\",\"name\":");
	buf__json(&c->out, runs && stack->ops_nr ? c->t->stack_ops.items[stack->ops_at].name
						 : timeline__activity(c->t, s));
	chrome_where(c, s->thread, s->start_ns);
	if (s->end_ns > s->start_ns) {
		chrome_lit(&c->out, ",\"dur\":");
		buf__us(&c->out, chrome_time(c, s->end_ns) - chrome_time(c, s->start_ns));
	}
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
