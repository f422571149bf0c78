/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What gpuprof itself spends for samples is the thread that looks at waiting threads, and the one
 * that takes events, in that: not the making of unwind tables, of reports or of HTTP answers.
 */
#include "capture/control/sampling.h"

#include "base/log.h"
#include "capture/control/gpu_windows.h"
#include "capture/private.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define OVER_NS	   (10 * SECOND_NS) /* before it is said */
#define LEAST_PART 0.5 /* of --overhead: a GPU's records have the rest, where they need it */

static struct rate_account read_account(struct capture *c)
{
	struct capture_cost cost;
	uint64_t charged;

	cost_read(c, &cost, &charged);
	return (struct rate_account){
		.now_ns = clock_now_ns(),
		.cpu_ns = cost.cpu_ns,
		.inside_ns = cost.samples_ns + cost.samples_around_ns,
		.own_ns = probe_session__sampler_ns(c->probes) + c->sampling.poll_cpu_ns -
			  (c->gpu_windows ? c->collector_drain_ns : 0),
	};
}

static void put_in_force(struct capture *c, uint64_t before_ns)
{
	struct sampling_rate *r = &c->sampling.rate;
	int err = probe_session__set_sample_period(c->probes, r->period_ns);

	if (err) {
		r->period_ns = before_ns;
		r->share = 0;
		log_warn("cannot change how often samples are taken, %.1f times a second: %s",
			 (double)SECOND_NS / (double)before_ns, strerror(-err));
		return;
	}
	log_debug("%.2f samples a second of each CPU: %.3f CPUs used, a sample %.0f ns, %.0f ns "
		  "owed",
		  (double)SECOND_NS / (double)r->period_ns, r->cpus, r->sample_ns, r->owed_ns);
}

void sampling_start(struct capture *c)
{
	struct rate_account begin = {.now_ns = c->start_ns};

	if (!capture_samples(c))
		return;
	begin.own_ns = probe_session__sampler_ns(c->probes);
	sampling_rate__init(&c->sampling.rate, c->options.overhead_pct, c->options.sample_hz,
			    &begin);
	if (c->options.overhead_pct > 0)
		put_in_force(c, c->sampling.rate.fastest_ns);
}

static void emit_over(struct capture *c)
{
	struct sampling *s = &c->sampling;

	if (s->over_emitted || s->rate.over_ns < OVER_NS)
		return;
	s->over_emitted = true;
	log_warn("sampling costs more than the %g %% of --overhead even at one sample a second of "
		 "each CPU",
		 c->options.overhead_pct);
}

void sampling_poll(struct capture *c, uint64_t cpu_ns)
{
	struct sampling *s = &c->sampling;
	bool off = c->off & CAPTURE_CPU || c->switching;
	struct rate_account a;
	uint64_t before_ns;

	if (!capture_samples(c) || !c->started || s->rate.share <= 0)
		return;
	s->poll_cpu_ns += cpu_ns;
	if (off == s->rate.skipping && clock_now_ns() - s->rate.last.now_ns < RATE_TURN_NS)
		return;
	a = read_account(c);
	before_ns = s->rate.period_ns;
	s->rate.share = fmax(LEAST_PART * c->options.overhead_pct / 100,
			     c->options.overhead_pct / 100 - gpu_windows_share(c));
	if (off)
		sampling_rate__skip(&s->rate, &a);
	else if (sampling_rate__poll(&s->rate, &a))
		put_in_force(c, before_ns);
	emit_over(c);
}

void sampling_begin(struct capture *c, uint64_t now_ns)
{
	if (capture_samples(c) && c->started)
		(void)sampling_rate__range(&c->sampling.rate, now_ns);
}

void sampling_end(struct capture *c, struct segment *s, uint64_t now_ns)
{
	if (capture_samples(c))
		s->rates = sampling_rate__range(&c->sampling.rate, now_ns);
}

/* ---- the description ---- */

static int write_rate(struct segment *s, const char *key, double hz)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "%.2f", hz);
	return recording_writer__meta(s->writer, key, text);
}

int sampling_describe(const struct capture *c, struct segment *s)
{
	char percent[32];
	int err;

	if (!capture_samples(c))
		return 0;
	err = capture_write_number(s, "sample_hz", c->options.sample_hz);
	err = err
		      ?: recording_writer__meta(
				 s->writer, "sampled_by",
				 probe_session__samples_by_tick(c->probes) ? "tick" : "timer");
	if (err || c->options.overhead_pct <= 0)
		return err;
	(void)snprintf(percent, sizeof(percent), "%g", c->options.overhead_pct);
	return recording_writer__meta(s->writer, "sample_overhead_pct", percent);
}

int sampling_write(const struct capture *c, struct segment *s)
{
	const struct rate_range *r = &s->rates;
	int err;

	if (!capture_samples(c) || !r->time_ns)
		return 0;
	err = write_rate(s, "sample_hz_least", (double)SECOND_NS / (double)r->most_ns);
	err = err ?: write_rate(s, "sample_hz_most", (double)SECOND_NS / (double)r->least_ns);
	err = err
		      ?: write_rate(s, "sample_hz_mean",
				    r->due_nr * (double)SECOND_NS / (double)r->time_ns);
	if (err || c->options.overhead_pct <= 0)
		return err;
	return capture_write_number(s, "sample_over_ns", r->over_ns);
}
