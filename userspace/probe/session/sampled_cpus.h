/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Makes each CPU sample what runs on it: in the scheduler's tick or, where the tick is too rare or
 * switches between threads that share the CPU, by a timer.
 */
#ifndef GP_PROBE_SESSION_SAMPLED_CPUS_H
#define GP_PROBE_SESSION_SAMPLED_CPUS_H

#include <stdbool.h>
#include <stdint.h>

struct gpuprof_bpf;
struct sampled_cpus;

/* Before loading: chooses the programs and sets their constants. `sample_ns` is the longest time
 * between two samples, 0: no sampling; `no_tick`: do not use the tick. 0 or -errno. */
int sampled_cpus__choose(struct gpuprof_bpf *bpf, uint64_t sample_ns, bool no_tick);

/* Begins sampling. Borrows `bpf`; the caller frees the result. NULL with errno on failure. */
struct sampled_cpus *sampled_cpus__new(struct gpuprof_bpf *bpf);

/* Sets the time between samples. 0, or -errno: some CPUs may keep the old one. */
int sampled_cpus__set_period(struct sampled_cpus *s, uint64_t period_ns);

/* Starts timers on CPUs that are shared now and ends them on those that no longer are. */
void sampled_cpus__poll(struct sampled_cpus *s, uint64_t now_ns);

/* Ends all timers until the next poll: nothing is sampled now. */
void sampled_cpus__pause(struct sampled_cpus *s);

/* NULL is allowed. */
void sampled_cpus__free(struct sampled_cpus *s);

#endif /* GP_PROBE_SESSION_SAMPLED_CPUS_H */
