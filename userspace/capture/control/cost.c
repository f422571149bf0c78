/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The account of a capture. CPU time is read from clocks. Callbacks and probes are counted, and
 * cost their number times what one costs, which is measured as well: by step_cost, where steps with
 * and without callbacks can be compared, else by the callbacks that collectors have timed. While
 * collectors report nothing but the ends of annotations there is nothing to compare with: callbacks
 * timed then have an account of their own.
 */
#include "capture/control/cost.h"

#include "base/killsafe_call.h"
#include "capture/control/control.h"
#include "capture/process/process_totals.h"
#include "common/clock.h"

#include <math.h>
#include <stdio.h>
#include <time.h>

#define OP_UNKNOWN_NS  600.0 /* charged for an operator until one has been timed */
#define HIT_UNKNOWN_NS 1000.0
/* What PyTorch does around a callback costs half as much again: assumed until steps were compared.
 */
#define AROUND 1.5
/* What the end of an annotation costs, by what its callback takes: PyTorch makes a record that it
 * makes for nobody else, and what comes once a step finds nothing in the caches. See
 * tests/bench/budget_rest.py. */
#define AROUND_END 3.5
/* One record of CUPTI, of which a launch makes two: assumed. On the stand-ins, which have the ring
 * and the clock to pay for alone, it was 490 (tests/bench/launches.py). */
#define GPU_RECORD_NS 600.0
/* What a sample takes from its thread beside the program that takes it, by that program's time:
 * see tests/bench/parts.py. */
#define SAMPLE_AROUND  0.5
#define ERROR_MAX      0.25 /* of the cost: less than that is known */
#define ERROR_MAX_NS   25
#define HIT_COST_EVERY SECOND_NS

void cost_new(struct control *c)
{
	c->cost.own_new_ns = killsafe_cpu_ns();
}

void cost_start(struct control *c)
{
	struct capture_cost cost;
	uint64_t charged;

	c->cost.own_start_ns = killsafe_cpu_ns();
	c->processes->clocks.since_ns = clock_now_ns();
	c->cost.hits_seen = probe_session__hits(c->probes);
	c->cost.hits_before = c->cost.hits_seen;
	cost_read(c, &cost, &charged);
}

static void read_clocks(const struct control *c, struct capture_cost *cost)
{
	cpu_clocks__read(&c->processes->clocks, &c->processes->table, &cost->cpu_ns,
			 &cost->collector_ns);
	cost->own_ns = killsafe_cpu_ns() - c->cost.own_start_ns;
}

/* Of a figure that is only known better now it may be less. */
static double since(uint64_t now, uint64_t before)
{
	return now > before ? (double)(now - before) : 0;
}

/* What was timed since the last reading. More than there was CPU time for is not believed. */
static void read_rest(struct control *c, struct capture_cost *cost)
{
	struct cost_keeper *k = &c->cost;
	struct callback_cost now = process_totals__timed(c->processes);

	if (k->rests && now.timed_nr > k->timed.timed_nr && now.timed_ns > k->timed.timed_ns) {
		k->rest.timed_ns += now.timed_ns - k->timed.timed_ns;
		k->rest.timed_nr += now.timed_nr - k->timed.timed_nr;
	}
	k->timed = now;
	cost->rest_ns = (uint64_t)fmin(AROUND_END * GP_TIMED_EVERY * (double)k->rest.timed_ns,
				       (double)cost->cpu_ns);
}

/* One operator's two callbacks, and those of the allocations and frees that there are for each
 * operator, as far as they are timed; 0: none was. */
static double timed_op_ns(const struct control *c)
{
	double timed_ns = since(c->cost.timed.timed_ns, c->cost.rest.timed_ns);
	double timed_nr = since(c->cost.timed.timed_nr, c->cost.rest.timed_nr);
	double calls_nr = 2;

	if (c->counts->collector_ops_nr)
		calls_nr += (double)c->counts->collector_memory_nr /
			    (double)c->counts->collector_ops_nr;
	return timed_nr > 0 ? calls_nr * timed_ns / timed_nr : 0;
}

static void read_op(const struct control *c, struct capture_cost *cost)
{
	double error_ns;

	cost->op_known = step_cost__per_op(&c->cost.steps, &cost->op_ns, &error_ns) &&
			 cost->op_ns > 0 &&
			 (error_ns < ERROR_MAX * cost->op_ns || error_ns < ERROR_MAX_NS);
	cost->op_error_ns = error_ns;
	if (!cost->op_known)
		cost->op_ns = AROUND * timed_op_ns(c);
}

/* What the budget pays for one, rather too much than too little. */
static double charge_of_op(const struct capture_cost *cost)
{
	if (cost->op_ns <= 0)
		return OP_UNKNOWN_NS;
	return cost->op_known ? cost->op_ns + cost->op_error_ns : cost->op_ns;
}

/* What an operator was measured to cost has what CUPTI took of its thread in it. */
static double charge_of_record(const struct capture_cost *cost)
{
	return cost->op_known ? 0 : GPU_RECORD_NS;
}

static double hit_ns(struct control *c)
{
	uint64_t now = clock_now_ns();
	struct probe_cost probes;

	if (now - c->cost.hit_read_ns < HIT_COST_EVERY)
		return c->cost.hit_ns;
	c->cost.hit_read_ns = now;
	probe_session__cost(c->probes, &probes);
	c->cost.hit_ns = (double)probes.ns_per_hit;
	return c->cost.hit_ns;
}

void cost_read(struct control *c, struct capture_cost *ret_cost, uint64_t *ret_charged_ns)
{
	struct capture_cost cost = {0};
	struct cost_keeper *k = &c->cost;
	uint64_t ops = c->counts->collector_ops_nr, hits = probe_session__hits(c->probes);
	double op, hit = hit_ns(c);

	read_clocks(c, &cost);
	read_rest(c, &cost);
	read_op(c, &cost);
	op = charge_of_op(&cost);
	k->charged_ns += (double)(ops - k->ops_seen) * op;
	k->charged_ns += (double)(hits > k->hits_seen ? hits - k->hits_seen : 0) *
			 (hit > 0 ? hit : HIT_UNKNOWN_NS);
	k->charged_ns += since(cost.rest_ns, k->rest_seen_ns);
	k->rest_seen_ns = cost.rest_ns;
	k->ops_seen = ops;
	if (hits > k->hits_seen)
		k->hits_seen = hits;
	k->charged_ns +=
		(double)(c->counts->collector_gpu_nr - k->gpu_seen) * charge_of_record(&cost);
	k->gpu_seen = c->counts->collector_gpu_nr;
	cost.callbacks_ns = (uint64_t)((double)ops * cost.op_ns) + cost.rest_ns;
	cost.gpu_ns = (uint64_t)((double)c->counts->collector_gpu_nr * charge_of_record(&cost));
	cost.probes_ns = (uint64_t)((double)(k->hits_seen - k->hits_before) * hit);
	cost.samples_ns = probe_session__sampling_ns(c->probes);
	cost.samples_around_ns = (uint64_t)(SAMPLE_AROUND * (double)cost.samples_ns);
	cost.inside_ns = cost.callbacks_ns + cost.gpu_ns + cost.probes_ns + cost.collector_ns +
			 cost.samples_ns + cost.samples_around_ns;
	cost.cost_ns = cost.inside_ns + cost.own_ns;
	*ret_cost = cost;
	*ret_charged_ns = (uint64_t)k->charged_ns;
}

static int write_number(struct recording_writer *w, const char *key, double value)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "%.0f", fmax(0, value));
	return recording_writer__meta(w, key, text);
}

static int write_samples(struct recording_writer *w, const struct capture_cost *cost,
			 const struct capture_cost *reported)
{
	int err = write_number(w, "cost_samples_ns", since(cost->samples_ns, reported->samples_ns));

	return err ? err
		   : write_number(w, "cost_samples_around_ns",
				  since(cost->samples_around_ns, reported->samples_around_ns));
}

int cost_write(struct control *c, struct recording_writer *w)
{
	struct cost_keeper *k = &c->cost;
	const struct capture_cost *reported = &k->reported;
	uint64_t charged, setup_ns = k->own_start_ns - k->own_new_ns;
	uint64_t stops_ns = c->processes->stops_ns;
	struct capture_cost cost;
	int err;

	k->hit_read_ns = 0;
	cost_read(c, &cost, &charged);
	err = write_number(w, "cost_cpu_ns", since(cost.cpu_ns, reported->cpu_ns));
	if (c->counts->collector_ops_nr == 0 || cost.op_ns > 0)
		err = err
			      ?: write_number(w, "cost_callbacks_ns",
					      since(cost.callbacks_ns, reported->callbacks_ns));
	if (c->counts->collector_gpu_nr)
		err = err ?: write_number(w, "cost_gpu_ns", since(cost.gpu_ns, reported->gpu_ns));
	if (capture_has_budget_windows(c->options))
		err = err
			      ?: write_number(w, "cost_rest_ns",
					      since(cost.rest_ns, reported->rest_ns));
	if (k->hits_seen == k->hits_before || k->hit_ns > 0)
		err = err
			      ?: write_number(w, "cost_probes_ns",
					      since(cost.probes_ns, reported->probes_ns));
	err = err
		      ?: write_number(w, "cost_collector_ns",
				      since(cost.collector_ns, reported->collector_ns));
	if (capture_samples(c->options))
		err = err ?: write_samples(w, &cost, reported);
	err = err ?: write_number(w, "cost_own_ns", since(cost.own_ns, reported->own_ns));
	err = err ?: write_number(w, "cost_setup_ns", since(setup_ns, k->setup_emitted_ns));
	err = err ?: write_number(w, "cost_stops_ns", since(stops_ns, k->stops_emitted_ns));
	k->reported = cost;
	k->setup_emitted_ns = setup_ns;
	k->stops_emitted_ns = stops_ns;
	if (!cost.op_known)
		return err;
	err = err ?: write_number(w, "cost_op_ns", cost.op_ns);
	err = err ?: write_number(w, "cost_op_error_ns", cost.op_error_ns);
	return err ?: write_number(w, "cost_op_windows", (double)k->steps.pairs_nr);
}
