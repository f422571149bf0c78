/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The rate in force. Of gpuprof's own CPU time two threads count: the one that looks at waiting
 * threads, and the one that takes events. Unwind tables, reports and HTTP answers do not.
 */
#include "capture/control/sampling.h"

#include "base/log.h"
#include "capture/control/control.h"
#include "capture/policy/sampling_rate.h"
#include "common/clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define OVER_NS	   (10 * SECOND_NS) /* before it is said */
#define LEAST_PART 0.5 /* of --overhead: a GPU's records have the rest, where they need it */

struct sampling {
	struct control *control;
	struct sampling_rate rate;
	uint64_t poll_cpu_ns; /* CPU time of the thread that polls the capture, in that */
	bool over_reported;
};

struct sampling *sampling__new(struct control *control)
{
	struct sampling *s = calloc(1, sizeof(*s));

	if (s)
		s->control = control;
	return s;
}

static struct rate_account read_account(struct sampling *s)
{
	struct capture_cost cost;
	uint64_t charged;

	cost_read(s->control, &cost, &charged);
	return (struct rate_account){
		.now_ns = clock_now_ns(),
		.cpu_ns = cost.cpu_ns,
		.inside_ns = cost.samples_ns + cost.samples_around_ns,
		.own_ns = probe_session__sampler_ns(s->control->probes) + s->poll_cpu_ns -
			  (capture_has_gpu_windows(s->control->options)
				   ? s->control->counts->collector_drain_ns
				   : 0),
	};
}

static void put_in_force(struct sampling *s, uint64_t before_ns)
{
	struct sampling_rate *r = &s->rate;
	int err = probe_session__set_sample_period(s->control->probes, r->period_ns);

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

static void sampling_prepare(void *self)
{
	struct sampling *s = self;
	struct rate_account begin = {.now_ns = s->control->run->start_ns};

	begin.own_ns = probe_session__sampler_ns(s->control->probes);
	sampling_rate__init(&s->rate, s->control->options->overhead_pct,
			    s->control->options->sample_hz, &begin);
	if (s->control->options->overhead_pct > 0)
		put_in_force(s, s->rate.fastest_ns);
}

static void warn_over(struct sampling *s)
{
	if (s->over_reported || s->rate.over_ns < OVER_NS)
		return;
	s->over_reported = true;
	log_warn("sampling costs more than the %g %% of --overhead even at one sample a second of "
		 "each CPU",
		 s->control->options->overhead_pct);
}

static void sampling_polled(void *self, uint64_t cpu_ns)
{
	struct sampling *s = self;
	bool off = s->control->off & CAPTURE_CPU || s->control->switching;
	struct rate_account a;
	uint64_t before_ns;

	if (!s->control->run->started || s->rate.share <= 0)
		return;
	s->poll_cpu_ns += cpu_ns;
	if (off == s->rate.skipping && clock_now_ns() - s->rate.last.now_ns < RATE_TURN_NS)
		return;
	a = read_account(s);
	before_ns = s->rate.period_ns;
	s->rate.share = fmax(LEAST_PART * s->control->options->overhead_pct / 100,
			     s->control->options->overhead_pct / 100 - s->control->gpu_share);
	if (off)
		sampling_rate__skip(&s->rate, &a);
	else if (sampling_rate__poll(&s->rate, &a))
		put_in_force(s, before_ns);
	warn_over(s);
}

/* A recording knows how often samples were due in its time. */
static int sampling_split(void *self, uint64_t now_ns)
{
	struct sampling *s = self;
	struct segment *ends = s->control->recordings->segments.current;
	struct rate_range range = sampling_rate__range(&s->rate, now_ns);

	if (ends)
		ends->rates = range;
	return 0;
}

static int sampling_end(void *self)
{
	const struct sampling *s = self;

	return sampling_split(self, s->control->run->end_ns);
}

const struct controller_ops sampling_ops = {
	.free = free,
	.prepare = sampling_prepare,
	.polled = sampling_polled,
	.split = sampling_split,
	.end = sampling_end,
};
