/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Reads from /proc what the recordings do not have: CPU time, memory and threads of the processes,
 * and gpuprof's own CPU time.
 */
#ifndef GP_CLI_TOP_TOP_FACTS_H
#define GP_CLI_TOP_TOP_FACTS_H

#include "base/hash.h"
#include "base/vec.h"
#include "output/summary/live_totals.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define TOP_HISTORY 16

/* Shares of the last intervals in percent, oldest first. */
struct top_history {
	double percent[TOP_HISTORY];
	size_t nr;
};

struct top_ran {
	pid_t pid;
	uint32_t tid;
	uint64_t ns;
	char comm[16];
};

struct top_facts {
	VEC(pid_t) pids;
	char *cmdline;	   /* of the first process, one line; may be NULL */
	double interval_s; /* that the shares are of; 0: nothing was measured yet */
	double cpu_percent;
	double own_percent; /* gpuprof's own CPU time */
	uint64_t rss_bytes;
	uint32_t threads_nr, processes_nr; /* that are still there */
	struct top_history cpu;
	/* private */
	VEC(struct top_ran) news; /* of threads, not given yet */
	struct hash ran;	  /* thread -> ns on a CPU when last read */
	struct hash consumed;	  /* pid -> ns of CPU */
	uint64_t read_ns, own_ns;
};

void top_facts__done(struct top_facts *f);

/* Watches these processes from now on, too. 0 or -ENOMEM. */
int top_facts__watch(struct top_facts *f, const pid_t *pids, size_t pids_nr);

/* Reads all values again; shares are of the time since the last call. To be called when an
 * interval ends. 0 or -ENOMEM. */
int top_facts__read(struct top_facts *f);

/* Adds the time that threads ran, and which processes are gone, to the totals of that interval. 0
 * or -ENOMEM. */
int top_facts__give(struct top_facts *f, struct live_totals *totals);

#endif /* GP_CLI_TOP_TOP_FACTS_H */
