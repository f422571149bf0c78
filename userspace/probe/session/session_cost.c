/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Measures what the session's probes cost: trap_cost.h measures a hit's path to its program and
 * back, and the kernel times the programs over a short time, as timing costs time too.
 */
#include "base/log.h"
#include "common/clock.h"
#include "gpuprof.skel.h"
#include "probe/session/session_private.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <time.h>
#include <unistd.h>

/* The kernel times no longer than this, and no more hits than a good mean needs. */
#define STATS_NS   1000000000ULL
#define STATS_HITS 20000

static void add_program(const struct bpf_program *program, uint64_t *runs, uint64_t *ns)
{
	struct bpf_prog_info info = {0};
	__u32 bytes = sizeof(info);

	if (bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &bytes))
		return;
	*runs += info.run_cnt;
	*ns += info.run_time_ns;
}

/* Returns what the kernel has timed of the session's programs since they were loaded. */
static struct timed_runs timed_runs(const struct probe_session *s)
{
	struct timed_runs all = {0};

	for (enum program i = 0; i < PROGRAMS_NR && s->bpf; i++)
		add_program(program_of(s->bpf, i), &all.nr, &all.ns);
	return all;
}

/* Returns what it has timed for us. Asks the kernel, which is expensive, only if the numbers can
 * have changed. */
static struct timed_runs our_runs(const struct probe_session *s)
{
	struct timed_runs ours = s->timing.runs, now;

	if (s->timing.stats_fd < 0)
		return ours;
	now = timed_runs(s);
	ours.nr += now.nr - s->timing.runs_before.nr;
	ours.ns += now.ns - s->timing.runs_before.ns;
	return ours;
}

void session_time_begin(struct probe_session *s)
{
	if (s->timing.stats_fd >= 0)
		return;
	s->timing.runs_before = timed_runs(s);
	s->timing.stats_fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
	s->timing.end_ns = clock_now_ns() + STATS_NS;
	s->timing.end_hits = probe_session__hits(s) + STATS_HITS;
	if (s->timing.stats_fd < 0) {
		log_debug("the kernel does not time its programs");
		s->timing.stats_fd = -1;
	}
}

void session_time_end(struct probe_session *s)
{
	if (s->timing.stats_fd < 0)
		return;
	s->timing.runs = our_runs(s);
	(void)close(s->timing.stats_fd);
	s->timing.stats_fd = -1;
}

void session_time_check(struct probe_session *s)
{
	if (s->timing.stats_fd >= 0 &&
	    (clock_now_ns() >= s->timing.end_ns || probe_session__hits(s) >= s->timing.end_hits))
		session_time_end(s);
}

uint64_t probe_session__hits(const struct probe_session *s)
{
	struct counters c;

	counters_read(s->bpf, &c);
	return counters_hits(&c);
}

void probe_session__cost(const struct probe_session *s, struct probe_cost *ret_cost)
{
	struct probe_cost cost = {.trap_ns = s->timing.trap_cost.ns,
				  .trap_stepped_ns = s->timing.trap_cost.stepped_ns};
	struct timed_runs runs = our_runs(s);
	struct counters c;

	counters_read(s->bpf, &c);
	cost.hits = counters_hits(&c);
	cost.hits_stepped = c.stepped_hits < cost.hits ? c.stepped_hits : cost.hits;
	cost.program_runs = runs.nr;
	if (cost.program_runs)
		cost.program_ns = runs.ns / cost.program_runs;
	if (cost.hits && cost.program_runs && cost.trap_ns &&
	    (cost.trap_stepped_ns || !cost.hits_stepped))
		cost.ns_per_hit =
			cost.program_ns +
			(uint64_t)(((double)(cost.hits - cost.hits_stepped) * (double)cost.trap_ns +
				    (double)cost.hits_stepped * (double)cost.trap_stepped_ns) /
				   (double)cost.hits);
	*ret_cost = cost;
}
