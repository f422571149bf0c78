/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What makes the CPUs of a machine look at what runs on them: the scheduler's tick or, where that
 * comes too seldom, or takes CPUs from threads that share them, a timer on each.
 */
#ifndef GP_PROBE_SESSION_SAMPLED_CPUS_H
#define GP_PROBE_SESSION_SAMPLED_CPUS_H

#include <stdbool.h>
#include <stdint.h>

struct gpuprof_bpf;
struct sampled_cpus;

/* Before the programs are loaded: those that are needed, and what they have to know. `sample_ns`:
 * the time between two samples at most, 0: nothing is to be sampled; `no_tick`: the tick is not to
 * be used. 0 or -errno. */
int sampled_cpus__choose(struct gpuprof_bpf *bpf, uint64_t sample_ns, bool no_tick);

/* From now on. NULL, errno set: it cannot be. Borrows `bpf`. The caller frees it. */
struct sampled_cpus *sampled_cpus__new(struct gpuprof_bpf *bpf);

/* From now on samples are so far apart. 0 or -errno: for some CPUs it may be as before. */
int sampled_cpus__set_period(struct sampled_cpus *s, uint64_t period_ns);

/* Time has gone on: where CPUs are shared now, timers begin, where they are no longer, they end. */
void sampled_cpus__poll(struct sampled_cpus *s, uint64_t now_ns);

/* Nothing is sampled until the next turn: no timer stays. */
void sampled_cpus__rest(struct sampled_cpus *s);

/* Takes NULL. */
void sampled_cpus__free(struct sampled_cpus *s);

#endif /* GP_PROBE_SESSION_SAMPLED_CPUS_H */
