/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

#include "capture/policy/step_times.h"

void step_times__recorded(struct step_times *s, const struct gp_ev_cpu_time *ev)
{
	s->readings[s->readings_at] =
		(struct cpu_reading){ev->head.tid, ev->head.time_ns, ev->cpu_ns};
	s->readings_at = (s->readings_at + 1) % STEP_TIMES_READINGS;
}

void step_times__op(struct step_times *s, const struct gp_ev_op *op)
{
	s->ops_nr += op->head.tid == s->last.tid;
}

/* The thread's CPU time at the end of the annotation, 0: it was not told. */
static uint64_t cpu_ns_at(const struct step_times *s, const struct gp_ev_op *op)
{
	for (size_t i = 0; i < STEP_TIMES_READINGS; i++)
		if (s->readings[i].tid == op->head.tid &&
		    s->readings[i].time_ns == op->head.time_ns)
			return s->readings[i].cpu_ns;
	return 0;
}

bool step_times__end(struct step_times *s, const struct gp_ev_op *op, uint64_t time_ns,
		     struct timed_steps *ret_steps)
{
	struct cpu_reading last = s->last, now = {op->head.tid, time_ns, cpu_ns_at(s, op)};
	struct timed_steps steps = {
		.from_ns = last.time_ns,
		.cpu_ns = now.cpu_ns - last.cpu_ns,
		.steps_nr = ++s->steps_nr,
		.ops_nr = s->ops_nr,
	};

	if (!now.cpu_ns)
		return false;
	s->last = now;
	s->steps_nr = s->ops_nr = 0;
	if (last.tid != now.tid || !last.cpu_ns || now.cpu_ns <= last.cpu_ns)
		return false;
	*ret_steps = steps;
	return true;
}
