/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A bucket repays over half a minute what was spent too much; the rest follows from means.
 */
#include "capture/policy/duty_cycle.h"

#include <math.h>

#define SECOND_NS 1e9
#define SLOW_NS	  (60 * SECOND_NS)  /* over so long a mean of what is earned */
#define EASE_NS	  (180 * SECOND_NS) /* and of what windows cost, where it is less than before */
#define REPAID_NS (30 * SECOND_NS)
#define HOLD_NS	  (5 * SECOND_NS)  /* the bucket holds what so long earns */
#define MOST_NS	  (60 * SECOND_NS) /* between two windows */
#define NEW_NR	  3		   /* windows, of which the last alone counts */
#define SHORT_NS  200000000U
#define LONG_NS	  1000000000U /* where they follow one another at once */

void duty_cycle__init(struct duty_cycle *p, double percent, const struct budget_account *begin)
{
	*p = (struct duty_cycle){
		.share = percent / 100,
		.length_ns = SHORT_NS,
		.last = *begin,
		.closed_ns = begin->now_ns,
		.random = (uint32_t)begin->now_ns,
	};
}

/* 0 to 1: windows do not fall in step with what the target does now and then. */
static double chance(struct duty_cycle *p)
{
	p->random = p->random * 1664525U + 1013904223U;
	return p->random / 4294967296.0;
}

static double since(uint64_t now, uint64_t before)
{
	return now > before ? (double)(now - before) : 0;
}

void duty_cycle__account(struct duty_cycle *p, const struct budget_account *a)
{
	double dt = since(a->now_ns, p->last.now_ns);
	double inside = since(a->inside_ns, p->last.inside_ns);
	double plain = fmax(0, since(a->cpu_ns, p->last.cpu_ns) - inside);
	double earned = p->share * plain;

	if (dt <= 0)
		return;
	/* The mean of all until there is enough of it. */
	p->known_ns += (uint64_t)dt;
	p->earned +=
		fmax(1 - exp(-dt / SLOW_NS), dt / (double)p->known_ns) * (earned / dt - p->earned);
	p->tokens_ns += earned - since(a->cost_ns, p->last.cost_ns);
	p->tokens_ns = fmin(p->tokens_ns, HOLD_NS * p->earned);
	p->last = *a;
}

void duty_cycle__skip(struct duty_cycle *p, const struct budget_account *a)
{
	p->last = *a;
}

bool duty_cycle__may_open(const struct duty_cycle *p, uint64_t now_ns)
{
	return now_ns >= p->next_ns;
}

static void follow_burn(struct duty_cycle *p, double burn, double dt)
{
	if (p->windows_nr <= NEW_NR || burn >= p->burn)
		p->burn = burn;
	else
		p->burn += (1 - exp(-dt / EASE_NS)) * (burn - p->burn);
}

bool duty_cycle__had(struct duty_cycle *p, uint64_t now_ns, uint64_t open_ns, double cost_ns)
{
	double dt = since(now_ns, p->closed_ns), may, rest;

	p->closed_ns = now_ns;
	if (!open_ns)
		return false;
	p->windows_nr += p->windows_nr <= NEW_NR;
	follow_burn(p, cost_ns / (double)open_ns, dt);
	may = fmax(0, p->earned + p->tokens_ns / REPAID_NS);
	if (p->burn <= may) {
		p->length_ns = LONG_NS;
		p->next_ns = now_ns;
		return true;
	}
	p->length_ns = SHORT_NS;
	rest = SHORT_NS * fmax(0, p->burn / fmax(may, 1e-12) - 1);
	p->next_ns = now_ns + (uint64_t)fmin(MOST_NS, rest * (0.75 + 0.5 * chance(p)));
	return false;
}
