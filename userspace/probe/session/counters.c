/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Reads the programs' per-CPU counters.
 */
#include "probe/session/counters.h"

#include "gpuprof.skel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdlib.h>
#include <string.h>

void counters_read(const struct gpuprof_bpf *bpf, struct counters *ret_counters)
{
	int cpus = libbpf_num_possible_cpus();
	struct counters *each = cpus > 0 ? calloc((size_t)cpus, sizeof(*each)) : NULL;
	uint64_t *sum = (uint64_t *)ret_counters;
	uint32_t zero = 0;

	memset(ret_counters, 0, sizeof(*ret_counters));
	if (each && bpf &&
	    !bpf_map__lookup_elem(bpf->maps.counters, &zero, sizeof(zero), each,
				  (size_t)cpus * sizeof(*each), 0))
		for (int i = 0; i < cpus; i++)
			for (size_t k = 0; k < sizeof(*each) / sizeof(uint64_t); k++)
				sum[k] += ((const uint64_t *)&each[i])[k];
	free(each);
}

uint64_t counters_hits(const struct counters *c)
{
	/* An op that an exception ended was closed by another op's hit. */
	return c->opened + c->closed - c->losses[GP_LOSS_EXCEPTION] - c->losses[GP_LOSS_API_END] +
	       c->losses[GP_LOSS_OPEN_AT_START] + c->losses[GP_LOSS_RECORD] +
	       c->losses[GP_LOSS_DEPTH] + c->other_hits;
}
