/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The readings are a ring of the latest ones. All differences are taken modulo 2^64, so no two
 * clocks are too far apart.
 */
#include "collector/cupti/cupti_clock.h"

#include "collector/runtime/compat.h"
#include "common/clock.h"

#define READ_TRIES   20
#define DRIFT_PART   1000	    /* a clock that drifts by more than 1 ns in 1000 was set */
#define AHEAD_NS     1000000ULL	    /* times up to this beyond the last reading are converted */
#define LATE_NS	     10000000000ULL /* no record comes later than this after its end */
#define READING(nr_) ((nr_) & (CLOCK_READINGS - 1))

void cupti_clock__init(struct cupti_clock *c)
{
	c->nr = 0;
	c->gaps_nr = 0;
	c->steps_nr = 0;
	c->least_gpu_ns = UINT64_MAX;
	c->most_gpu_ns = 0;
}

bool cupti_clock__read(int (*get_timestamp)(uint64_t *ret_ns), struct clock_reading *ret_reading)
{
	struct clock_reading best = {.width_ns = UINT64_MAX};

	for (int i = 0; i < READ_TRIES; i++) {
		uint64_t before = clock_now_ns();
		uint64_t gpu_ns = 0;
		int result = get_timestamp(&gpu_ns);
		uint64_t width_ns = clock_now_ns() - before;

		if (result || !gpu_ns)
			return false;
		if (width_ns < best.width_ns)
			best = (struct clock_reading){before + width_ns / 2, gpu_ns, width_ns};
	}
	*ret_reading = best;
	return true;
}

static uint64_t less(uint64_t ns, uint64_t by_ns)
{
	return ns > by_ns ? ns - by_ns : 0;
}

static void add_gap(struct cupti_clock *c, uint64_t from_ns, uint64_t to_ns)
{
	struct clock_gap *last;

	if (c->gaps_nr < CLOCK_GAPS) {
		c->gaps[c->gaps_nr++] = (struct clock_gap){from_ns, to_ns};
		return;
	}
	last = &c->gaps[CLOCK_GAPS - 1];
	last->from_ns = from_ns < last->from_ns ? from_ns : last->from_ns;
	last->to_ns = to_ns > last->to_ns ? to_ns : last->to_ns;
}

/* The most that the clock can advance between the two. */
static uint64_t longest(const struct clock_reading *a, const struct clock_reading *b)
{
	uint64_t ns = b->time_ns - a->time_ns + a->width_ns + b->width_ns;

	return ns + ns / DRIFT_PART;
}

/* Adds gaps, because the clock was set between a and b. A record made there has a time from before
 * the moment, following a, or from after it, leading to b. Each of the two ranges is a gap unless
 * no other moment had such times. If the clock was set back by more than has passed, times before a
 * come a second time, and records of the first time may still come in. */
static void add_gaps(struct cupti_clock *c, const struct clock_reading *a,
		     const struct clock_reading *b)
{
	uint64_t passed_ns = longest(a, b), from_ns = a->gpu_ns;
	bool above =
		a->gpu_ns == c->most_gpu_ns && less(b->gpu_ns, passed_ns) > a->gpu_ns + passed_ns;
	bool below = b->gpu_ns < c->least_gpu_ns;
	/* By the time the times before a come again, no record of the first time comes any more. */
	bool far = below && less(a->gpu_ns, LATE_NS + passed_ns) > b->gpu_ns;

	if (b->gpu_ns < from_ns)
		from_ns =
			less(a->gpu_ns, LATE_NS) > b->gpu_ns ? less(a->gpu_ns, LATE_NS) : b->gpu_ns;
	if (!above && !far)
		add_gap(c, from_ns, a->gpu_ns + passed_ns);
	if (!above && !below)
		add_gap(c, less(b->gpu_ns, passed_ns), b->gpu_ns);
}

/* Whether the clock was not set between the two. */
static bool is_steady(const struct clock_reading *a, const struct clock_reading *b)
{
	uint64_t passed_ns = b->time_ns - a->time_ns;
	int64_t moved_ns = (int64_t)(passed_ns - (b->gpu_ns - a->gpu_ns));
	uint64_t allowed_ns = passed_ns / DRIFT_PART + a->width_ns + b->width_ns;

	return b->gpu_ns >= a->gpu_ns &&
	       (uint64_t)(moved_ns < 0 ? -moved_ns : moved_ns) <= allowed_ns;
}

bool cupti_clock__add(struct cupti_clock *c, const struct clock_reading *reading)
{
	const struct clock_reading *last = &c->readings[READING(c->nr - 1)];
	bool steady = true;

	if (c->nr && !is_steady(last, reading)) {
		steady = false;
		c->steps_nr++;
		add_gaps(c, last, reading);
	}
	if (reading->gpu_ns < c->least_gpu_ns)
		c->least_gpu_ns = reading->gpu_ns;
	if (reading->gpu_ns > c->most_gpu_ns)
		c->most_gpu_ns = reading->gpu_ns;
	c->readings[READING(c->nr++)] = *reading;
	return steady;
}

uint64_t cupti_clock__last_ns(const struct cupti_clock *c)
{
	return c->nr ? c->readings[READING(c->nr - 1)].time_ns : 0;
}

static uint64_t between(const struct clock_reading *a, const struct clock_reading *b,
			uint64_t gpu_ns)
{
	uint64_t done_ns = gpu_ns - a->gpu_ns;
	uint64_t all_ns = b->gpu_ns - a->gpu_ns;
	int64_t moved_ns = (int64_t)(b->time_ns - a->time_ns - all_ns);

	if (!all_ns)
		return a->time_ns;
	/* The correction is small: a double is exact to far less than a nanosecond. */
	return a->time_ns + done_ns +
	       (uint64_t)(int64_t)((double)moved_ns * (double)done_ns / (double)all_ns);
}

/* Converts a time between the two readings. False: it is not between them. */
static bool convert_within(const struct clock_reading *a, const struct clock_reading *b,
			   uint64_t gpu_ns, uint64_t *ret_ns)
{
	if (is_steady(a, b)) {
		if (gpu_ns < a->gpu_ns || gpu_ns > b->gpu_ns)
			return false;
		*ret_ns = between(a, b, gpu_ns);
		return true;
	}
	if (gpu_ns <= b->gpu_ns && b->gpu_ns - gpu_ns <= longest(a, b))
		*ret_ns = b->time_ns - (b->gpu_ns - gpu_ns);
	else if (gpu_ns >= a->gpu_ns && gpu_ns - a->gpu_ns <= longest(a, b))
		*ret_ns = a->time_ns + (gpu_ns - a->gpu_ns);
	else
		return false;
	return true;
}

enum clock_result cupti_clock__convert(const struct cupti_clock *c, uint64_t gpu_ns,
				       uint64_t *ret_ns)
{
	uint64_t oldest = c->nr > CLOCK_READINGS ? c->nr - CLOCK_READINGS : 0;
	const struct clock_reading *later;

	if (!c->nr)
		return CLOCK_UNSTEADY;
	for (uint32_t i = 0; i < c->gaps_nr; i++)
		if (gpu_ns >= c->gaps[i].from_ns && gpu_ns <= c->gaps[i].to_ns)
			return CLOCK_UNSTEADY;
	later = &c->readings[READING(c->nr - 1)];
	if (gpu_ns > later->gpu_ns && gpu_ns - later->gpu_ns <= AHEAD_NS) {
		*ret_ns = later->time_ns + (gpu_ns - later->gpu_ns);
		return CLOCK_CONVERTED;
	}
	for (uint64_t nr = c->nr - 1; nr > oldest; nr--)
		if (convert_within(&c->readings[READING(nr - 1)], &c->readings[READING(nr)], gpu_ns,
				   ret_ns))
			return CLOCK_CONVERTED;
	if (!oldest && !c->steps_nr && gpu_ns < c->readings[0].gpu_ns)
		return CLOCK_EARLY;
	return CLOCK_UNSTEADY;
}
