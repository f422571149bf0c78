/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

#include "probe/session/cpu_sharing.h"

static void begin(struct cpu_sharing *c, const struct gp_sampled_cpu *is, uint64_t now_ns)
{
	c->known = true;
	c->since_ns = now_ns;
	c->was = *is;
}

static bool is_shared(const struct cpu_sharing *c, const struct gp_sampled_cpu *is, uint64_t part)
{
	uint64_t shared = is->shared - c->was.shared;

	return shared >= SHARING_LEAST && shared * part >= is->ticks - c->was.ticks;
}

/* A sampled thread on the CPU must have been met by then. */
static uint64_t least_ns(uint64_t period_ns)
{
	uint64_t ns = SHARING_SAMPLES * period_ns;

	return ns > SHARING_TIMER_NS ? ns : SHARING_TIMER_NS;
}

bool cpu_sharing__poll(struct cpu_sharing *c, const struct gp_sampled_cpu *is, uint64_t now_ns,
		       uint64_t period_ns)
{
	uint64_t past_ns = now_ns - c->since_ns;
	bool ours = is->ours != c->was.ours;

	if (!c->known) {
		begin(c, is, now_ns);
	} else if (!c->timer) {
		c->timer = (ours || now_ns >= c->rest_until_ns) && is_shared(c, is, SHARING_PART);
		if (c->timer || past_ns >= SHARING_SPAN_NS)
			begin(c, is, now_ns);
	} else if (past_ns >= least_ns(period_ns)) {
		c->timer = ours && is_shared(c, is, (uint64_t)2 * SHARING_PART);
		if (!ours)
			c->rest_until_ns = now_ns + SHARING_PAUSE_NS;
		begin(c, is, now_ns);
	}
	return c->timer;
}
