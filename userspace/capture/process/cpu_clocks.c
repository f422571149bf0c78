/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Reads CPU time from clocks. That of a collector's thread lies in memory that the process can
 * write.
 */
#include "capture/process/cpu_clocks.h"

#include "capture/collector/client.h"
#include "capture/process/process_table.h"
#include "common/clock.h"

#include <time.h>

/* 0: the process has gone. */
static uint64_t process_cpu_ns(pid_t pid)
{
	clockid_t clock;

	return clock_getcpuclockid(pid, &clock) ? 0 : clock_ns(clock);
}

/* A clock that begins at its first reading; one that goes back, or faster than `most_ns`, stands
 * still. */
static uint64_t advance(struct cpu_clock *k, uint64_t now_ns, uint64_t most_ns)
{
	if (!k->begin_ns)
		k->begin_ns = k->last_ns = now_ns;
	if (now_ns > k->last_ns && now_ns - k->begin_ns <= most_ns)
		k->last_ns = now_ns;
	return k->last_ns - k->begin_ns;
}

static void read_process(const struct cpu_clocks *k, struct traced_process *m, uint64_t *cpu_ns,
			 uint64_t *collector_ns)
{
	uint64_t wall_ns = clock_now_ns() - k->since_ns;

	*cpu_ns += advance(&m->cpu, m->end ? 0 : process_cpu_ns(m->process->pid), UINT64_MAX);
	/* The process itself says it: more than there was time for is not believed. */
	*collector_ns +=
		advance(&m->collector_cpu,
			m->collector ? collector_client__thread_cpu_ns(m->collector) : 0, wall_ns);
}

void cpu_clocks__forget(struct cpu_clocks *k, struct traced_process *m)
{
	read_process(k, m, &k->gone_cpu_ns, &k->gone_collector_ns);
}

void cpu_clocks__read(const struct cpu_clocks *k, const struct process_table *processes,
		      uint64_t *ret_cpu_ns, uint64_t *ret_collector_ns)
{
	*ret_cpu_ns = k->gone_cpu_ns;
	*ret_collector_ns = k->gone_collector_ns;
	for (size_t i = 0; i < processes->nr; i++)
		read_process(k, processes->items[i], ret_cpu_ns, ret_collector_ns);
}
