/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The counters of the BPF programs, summed over all CPUs.
 */
#ifndef GP_PROBE_SESSION_COUNTERS_H
#define GP_PROBE_SESSION_COUNTERS_H

struct gpuprof_bpf;

#include "wire.h"

#include <stdint.h>

/* Mirrors struct counters of bpf/maps.bpf.h. */
struct counters {
	uint64_t losses[GP_LOSS_NR];
	uint64_t opened;
	uint64_t closed;
	uint64_t other_hits;
	uint64_t stepped_hits;
	uint64_t sampling_ns; /* time that samples took of running threads */
};

/* Reads the sums of all CPUs; zeros if `bpf` is NULL or they cannot be read. */
void counters_read(const struct gpuprof_bpf *bpf, struct counters *ret_counters);

/* How often probes were hit. */
uint64_t counters_hits(const struct counters *c);

#endif /* GP_PROBE_SESSION_COUNTERS_H */
