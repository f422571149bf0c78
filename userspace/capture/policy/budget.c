/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The bucket. What it may hold is small, so that after a quiet time no minute costs much more than
 * its share.
 */
#include "capture/policy/budget.h"

#include <math.h>

#define SECOND_NS   1e9
#define LATELY_NS   (5 * SECOND_NS)  /* what "lately" means */
#define HOLD_S	    5		     /* the bucket holds what so many seconds fill */
#define MOST_S	    60		     /* or a step's cost, up to what so many fill */
#define OVERDRAWN   0.25	     /* of the bar: a window goes on until so much is owed */
#define LEAST_NS    1e6		     /* of a window by time */
#define DEAR	    0.35	     /* of what is earned */
#define KNOWN_NS    (10 * SECOND_NS) /* of rest, before it is judged */
#define LEARN	    0.3		     /* weight of the latest window */
#define EASE	    0.1		     /* where it cost less than before */
#define HOPELESS_NR 600		     /* windows by time, before a step is tried again */
#define MARGIN	    1.25	     /* steps differ */

/* 0 to 1; chance keeps windows from falling in step with what the target does now and then. */
static double chance(struct budget *b)
{
	b->random = b->random * 1664525U + 1013904223U;
	return b->random / 4294967296.0;
}

static void set_bar(struct budget *b)
{
	double least = b->rate * SECOND_NS;
	/* At least half of it is to go into what is seen. */
	double need = b->fixed_ns + fmax(MARGIN * b->step_ns, b->fixed_ns);

	need = fmin(fmax(need, b->need_ns) * (1 + 0.25 * chance(b)), MOST_S * least);
	b->bar_ns = fmax(least * (0.75 + 0.5 * chance(b)), need);
}

void budget__init(struct budget *b, double percent, const struct budget_account *begin)
{
	*b = (struct budget){
		.share = percent / 100,
		.begin = *begin,
		.last = *begin,
		.random = (uint32_t)begin->now_ns,
	};
}

static double since(uint64_t now, uint64_t before)
{
	return now > before ? (double)(now - before) : 0;
}

/* The mean of all until "lately" is over. */
static void follow(double *mean, double value, double weight_ns, double known_ns)
{
	double weight = fmax(1 - exp(-weight_ns / LATELY_NS), weight_ns / (known_ns + weight_ns));

	*mean += weight * (value - *mean);
}

void budget__account(struct budget *b, const struct budget_account *a)
{
	double dt = since(a->now_ns, b->last.now_ns);
	double inside = since(a->inside_ns, b->last.inside_ns);
	double cost = since(a->cost_ns, b->last.cost_ns);
	double plain = fmax(0, since(a->cpu_ns, b->last.cpu_ns) - inside);
	double hold;

	if (dt <= 0)
		return;
	follow(&b->rate, b->share * plain / dt, dt, since(b->last.now_ns, b->begin.now_ns));
	if (!b->open) {
		follow(&b->rest_rate, inside / dt, dt, (double)b->rest_ns);
		b->rest_ns += (uint64_t)dt;
	}
	b->last = *a;
	b->spent_ns += cost;
	b->tokens_ns += b->share * plain - cost;
	hold = fmin(fmax(HOLD_S * b->rate * SECOND_NS, 2 * b->bar_ns),
		    MOST_S * b->rate * SECOND_NS);
	if (b->tokens_ns > hold)
		b->tokens_ns = hold;
	if (b->bar_ns <= 0)
		set_bar(b);
}

void budget__skip(struct budget *b, const struct budget_account *a)
{
	b->last = *a;
}

bool budget__may_open(const struct budget *b)
{
	return !b->open && b->bar_ns > 0 && since(b->last.now_ns, b->begin.now_ns) >= SECOND_NS &&
	       b->tokens_ns >= b->bar_ns;
}

/* As much as what is there pays for. */
static void plan(struct budget *b, bool by_time, double room_ns)
{
	double unit_ns = by_time ? b->burn : b->step_ns, least = by_time ? LEAST_NS : 1;

	b->spent_ns = 0;
	b->plan = unit_ns > 0 ? fmax(least, floor(room_ns / unit_ns)) : 0;
}

void budget__open(struct budget *b, bool by_time)
{
	b->open = true;
	b->edge_ns = 0;
	plan(b, by_time, b->tokens_ns - b->fixed_ns);
}

bool budget__is_over(const struct budget *b, double done)
{
	if (b->tokens_ns < -OVERDRAWN * b->bar_ns)
		return true;
	/* Nothing is known: until there is nothing left. */
	return b->plan > 0 ? done >= b->plan : done > 0 && b->tokens_ns < b->fixed_ns / 2;
}

bool budget__may_go_on(const struct budget *b)
{
	return b->tokens_ns >= b->bar_ns;
}

static void learn(double *mean, double value)
{
	*mean += (*mean > 0 ? LEARN : 1) * (value - *mean);
}

/* What is dearer than it was is so at once: a plan made for what is cheap is not kept. */
static void learn_up(double *mean, double value)
{
	*mean += (value > *mean ? 1 : EASE) * (value - *mean);
}

/* More than a minute's worth is not waited for. */
static void learn_need(struct budget *b)
{
	double most = MOST_S * b->rate * SECOND_NS;

	if (b->need_ns < 0.99 * most) {
		/* All that is known is that it takes more. */
		b->need_ns = fmin(2 * fmax(b->spent_ns, b->need_ns), most);
		return;
	}
	b->need_ns = 0;
	b->hopeless_nr = HOPELESS_NR;
}

static void learn_window(struct budget *b, bool by_time, double done, double within_ns)
{
	b->edge_ns += fmax(0, b->spent_ns - within_ns);
	if (by_time) {
		b->step_ns = 0;
		b->hopeless_nr -= b->hopeless_nr > 0;
	}
	if (by_time || done > 0)
		b->need_ns = 0;
	else
		learn_need(b);
	if (done >= (by_time ? LEAST_NS : 1))
		learn_up(by_time ? &b->burn : &b->step_ns, within_ns / done);
}

void budget__closed(struct budget *b, bool by_time, double done, double within_ns)
{
	learn_window(b, by_time, done, within_ns);
	if (by_time || done > 0)
		learn(&b->fixed_ns, b->edge_ns);
	b->open = false;
	set_bar(b);
}

void budget__cut(struct budget *b, bool by_time, double done, double within_ns)
{
	learn_window(b, by_time, done, within_ns);
	set_bar(b);
	plan(b, by_time, b->tokens_ns);
}

bool budget__is_hopeless(const struct budget *b)
{
	return b->hopeless_nr > 0;
}

bool budget__mute_over_budget(const struct budget *b)
{
	return (double)b->rest_ns >= KNOWN_NS && b->rest_rate > DEAR * b->rate;
}
