/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The period is what sampling costs in one, of which the targets' part goes with the CPUs that they
 * use, over what may be spent in a nanosecond. A part that does not go with the rate makes the
 * period longer turn by turn, until what is left pays for the rest.
 */
#include "capture/policy/sampling_rate.h"

#include <math.h>
#include <string.h>

#define SECOND_NS      1e9
#define LATELY_NS      (3 * SECOND_NS) /* what "lately" means, of the targets' use of CPUs */
#define LATELY_NR      200.0	       /* and in samples */
#define UNKNOWN_NS     150000.0	       /* a sample, until some were measured */
#define OWN_UNKNOWN_NS 100000.0	       /* gpuprof itself, in the time between two */
#define OWN_KNOWN_NR   3	       /* turns, before that is judged */
#define OWN_ONCE       2.0  /* more than so many times the usual is not for the samples */
#define JUMP	       1.5  /* a sample that costs so many times as much is believed at once */
#define JUMP_NR	       10.0 /* if it was so many */
#define OWED_NS	       (5 * SECOND_NS)	/* no more is owed than what is earned in that time */
#define REPAID_NS      (10 * SECOND_NS) /* in which it is paid back */
#define FASTER	       2.0		/* from one turn to the next, at most */
#define ALIKE	       0.05		/* a rate this near is the same */
#define WORKING_CPUS   0.1

static double since(uint64_t now, uint64_t before)
{
	return now > before ? (double)(now - before) : 0;
}

/* The rate in force was so until now. */
static void pass(struct sampling_rate *r, uint64_t now_ns)
{
	struct rate_range *g = &r->range;
	double dt = since(now_ns, r->range_until_ns);

	if (dt <= 0 || r->skipping)
		return;
	g->due_nr += dt / (double)r->period_ns;
	g->time_ns += (uint64_t)dt;
	g->least_ns = g->least_ns && g->least_ns < r->period_ns ? g->least_ns : r->period_ns;
	g->most_ns = g->most_ns > r->period_ns ? g->most_ns : r->period_ns;
	r->range_until_ns = now_ns;
}

static uint64_t within_bounds(const struct sampling_rate *r, double period_ns)
{
	if (!(period_ns < (double)RATE_FLOOR_NS))
		return r->fastest_ns > RATE_FLOOR_NS ? r->fastest_ns : RATE_FLOOR_NS;
	return period_ns > (double)r->fastest_ns ? (uint64_t)period_ns : r->fastest_ns;
}

void sampling_rate__init(struct sampling_rate *r, double percent, uint32_t hz,
			 const struct rate_account *begin)
{
	*r = (struct sampling_rate){
		.share = percent / 100,
		.fastest_ns = (uint64_t)(SECOND_NS / hz),
		.last = *begin,
		.sample_ns = UNKNOWN_NS,
		.range_until_ns = begin->now_ns,
	};
	r->period_ns = r->fastest_ns;
	if (r->share > 0)
		r->period_ns = within_bounds(r, (UNKNOWN_NS + OWN_UNKNOWN_NS) / r->share);
}

/* ---- what it costs ---- */

static double median(const double *values, uint32_t nr)
{
	double sorted[RATE_OWN_NR];

	for (uint32_t i = 0; i < nr; i++) {
		uint32_t at = i;

		for (; at && sorted[at - 1] > values[i]; at--)
			sorted[at] = sorted[at - 1];
		sorted[at] = values[i];
	}
	return nr % 2 ? sorted[nr / 2] : (sorted[nr / 2 - 1] + sorted[nr / 2]) / 2;
}

/* What gpuprof spends in a period. What comes once is in few turns: the median does not know it. */
static double own_usual(const struct sampling_rate *r)
{
	if (r->own_nr < OWN_KNOWN_NR)
		return OWN_UNKNOWN_NS;
	return median(r->own_ns, r->own_nr < RATE_OWN_NR ? r->own_nr : RATE_OWN_NR);
}

static void learn_cpus(struct sampling_rate *r, double cpus, double dt)
{
	double weight = fmax(1 - exp(-dt / LATELY_NS), dt / ((double)r->known_ns + dt));

	r->cpus += weight * (cpus - r->cpus);
	r->known_ns += (uint64_t)dt;
	/* After two turns of less it is less. One alone may be a pause. */
	r->cpus = fmin(r->cpus, fmax(cpus, r->cpus_before));
	r->cpus_before = cpus;
}

static void learn_sample(struct sampling_rate *r, double inside_ns, double plain_ns)
{
	double nr = plain_ns / (double)r->period_ns, each = nr > 0 ? inside_ns / nr : 0;

	if (nr >= JUMP_NR && each > JUMP * r->sample_ns)
		r->sample_ns = each;
	else if (nr > 0)
		r->sample_ns += (1 - exp(-nr / LATELY_NR)) * (each - r->sample_ns);
}

/* Takes the turn in; what it has cost that is to be paid for. */
static double learn(struct sampling_rate *r, const struct rate_account *a, double dt,
		    double plain_ns)
{
	double inside_ns = since(a->inside_ns, r->last.inside_ns);
	double own_ns = since(a->own_ns, r->last.own_ns);
	double periods = dt / (double)r->period_ns;

	learn_cpus(r, plain_ns / dt, dt);
	learn_sample(r, inside_ns, plain_ns);
	r->own_ns[r->own_nr++ % RATE_OWN_NR] = own_ns / periods;
	return inside_ns + fmin(own_ns, OWN_ONCE * own_usual(r) * periods);
}

/* ---- the rate ---- */

static void set_owed(struct sampling_rate *r, double more_ns)
{
	double most = OWED_NS * r->share * r->cpus;

	r->owed_ns = fmin(fmax(r->owed_ns + more_ns, 0), most);
}

static void note_over(struct sampling_rate *r, double wanted_ns, double dt)
{
	bool over = !(wanted_ns <= (double)RATE_FLOOR_NS) && r->period_ns >= RATE_FLOOR_NS &&
		    r->cpus >= WORKING_CPUS;

	r->over_ns = over ? r->over_ns + (uint64_t)dt : 0;
	r->range.over_ns += over ? (uint64_t)dt : 0;
}

/* The period that costs what there is; infinite: nothing is. */
static double wanted_period(const struct sampling_rate *r)
{
	double allowed = r->share * r->cpus - r->owed_ns / REPAID_NS;

	return allowed > 0 ? (r->cpus * r->sample_ns + own_usual(r)) / allowed : INFINITY;
}

bool sampling_rate__poll(struct sampling_rate *r, const struct rate_account *a)
{
	double dt = since(a->now_ns, r->last.now_ns), plain_ns, cost_ns, wanted_ns;
	uint64_t period_ns;

	if (r->skipping) {
		r->skipping = false;
		r->range_until_ns = a->now_ns;
		r->last = *a;
		return false;
	}
	if (r->share <= 0 || dt < (double)RATE_TURN_NS)
		return false;
	pass(r, a->now_ns);
	plain_ns =
		fmax(0, since(a->cpu_ns, r->last.cpu_ns) - since(a->inside_ns, r->last.inside_ns));
	cost_ns = learn(r, a, dt, plain_ns);
	r->last = *a;
	set_owed(r, cost_ns - r->share * plain_ns);
	wanted_ns = wanted_period(r);
	note_over(r, wanted_ns, dt);
	period_ns = within_bounds(r, fmax(wanted_ns, (double)r->period_ns / FASTER));
	if (fabs((double)period_ns - (double)r->period_ns) < ALIKE * (double)r->period_ns &&
	    period_ns != r->fastest_ns && period_ns != RATE_FLOOR_NS)
		return false;
	if (period_ns == r->period_ns)
		return false;
	r->period_ns = period_ns;
	return true;
}

void sampling_rate__skip(struct sampling_rate *r, const struct rate_account *a)
{
	pass(r, a->now_ns);
	r->skipping = true;
	r->last = *a;
	r->range_until_ns = a->now_ns;
}

struct rate_range sampling_rate__range(struct sampling_rate *r, uint64_t now_ns)
{
	struct rate_range range;

	pass(r, now_ns);
	range = r->range;
	r->range = (struct rate_range){0};
	return range;
}
