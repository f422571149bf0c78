/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * CPU time of the traced processes and of the collectors in them, those that are gone included.
 */
#ifndef GP_CAPTURE_PROCESS_CPU_CLOCKS_H
#define GP_CAPTURE_PROCESS_CPU_CLOCKS_H

#include <stdint.h>

struct process_table;
struct traced_process;

/* Nanoseconds that only grow, counted from the first reading. */
struct cpu_clock {
	uint64_t begin_ns, last_ns;
};

struct cpu_clocks {
	uint64_t since_ns;			 /* when the capture started */
	uint64_t gone_cpu_ns, gone_collector_ns; /* of processes that are gone */
};

/* Reads all clocks: CPU time since the capture started, `collector`: that of the collectors' own
 * threads, which is part of it. */
void cpu_clocks__read(const struct cpu_clocks *k, const struct process_table *processes,
		      uint64_t *ret_cpu_ns, uint64_t *ret_collector_ns);

/* A process and its collector are about to be forgotten. */
void cpu_clocks__forget(struct cpu_clocks *k, struct traced_process *m);

#endif /* GP_CAPTURE_PROCESS_CPU_CLOCKS_H */
