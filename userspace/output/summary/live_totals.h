/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Totals for views that are updated while a capture runs: rows by operator, kernel, source line and
 * thread. Each row has the values of the last timeline and their sums over all timelines that were
 * added. Nothing of a timeline is kept. Memory is bounded: in each view at most TOTALS_ROWS_MAX
 * names have rows of their own, and the others share one.
 */
#ifndef GP_OUTPUT_SUMMARY_LIVE_TOTALS_H
#define GP_OUTPUT_SUMMARY_LIVE_TOTALS_H

#include "base/hash.h"
#include "base/intern.h"
#include "base/vec.h"
#include "timeline/model/timeline.h"

#define TOTALS_ROWS_MAX 20000
#define TOTALS_OTHERS	"[other names]"

enum totals_view {
	TOTALS_OPS = 0,	    /* the table's rows of CPU events, annotations included */
	TOTALS_KERNELS = 1, /* kernels, copies and memsets */
	TOTALS_LINES = 2,   /* lines of Python that called operators; needs stacks */
	TOTALS_MEMORY = 3,  /* operators that allocated; needs memory */
	TOTALS_THREADS = 4,
	TOTALS_VIEWS = 5,
};

enum totals_value {
	TOTALS_CALLS = 0, /* of ops or launches; of lines and threads: of operators */
	TOTALS_SELF_CPU_NS = 1,
	TOTALS_CPU_NS = 2,	 /* with callees; of threads: in operators */
	TOTALS_SELF_CUDA_NS = 3, /* GPU work; of kernels: theirs */
	TOTALS_CUDA_NS = 4,
	TOTALS_ALLOCATIONS = 5,
	TOTALS_CPU_BYTES = 6,	   /* allocated, freed since or not */
	TOTALS_CPU_KEPT_BYTES = 7, /* of these: not freed before the recording's end */
	TOTALS_CUDA_BYTES = 8,	   /* the same of all GPUs */
	TOTALS_CUDA_KEPT_BYTES = 9,
	TOTALS_RAN_NS = 10, /* of threads: on a CPU; from live_totals__ran() */
	TOTALS_OFF_NS = 11, /* on no CPU; as all times of CPUs, estimated where there are samples */
	TOTALS_SAMPLES = 12, /* of threads on a CPU */
	TOTALS_VALUES = 13,
};

enum totals_span { TOTALS_LAST = 0, TOTALS_SUM = 1, TOTALS_SPANS = 2 };

struct totals_row {
	const char *name; /* one line of UTF-8; lives as long as the totals */
	uint64_t values[TOTALS_SPANS][TOTALS_VALUES];
	int64_t pid;  /* of threads */
	uint32_t tid; /* of threads */
};

struct totals_device {
	uint32_t device;
	char name[64];
	uint64_t total_bytes; /* what the GPU has, 0: not known */
	uint64_t busy_ns[TOTALS_SPANS];
	/* As PyTorch's allocator last reported, over all processes; 0: it did not. */
	uint64_t allocated_bytes, reserved_bytes;
};

/* The time of steps, of the process that has most of them. */
struct totals_steps {
	uint64_t nr;
	uint64_t sum_ns, max_ns;
};

struct live_totals {
	VEC(struct totals_row) rows[TOTALS_VIEWS];
	VEC(struct totals_device) devices; /* by number */
	VEC(struct tl_loss) losses;	   /* added up */
	struct totals_steps steps[TOTALS_SPANS];
	uint64_t wall_ns[TOTALS_SPANS];
	uint64_t gpu_wall_ns[TOTALS_SPANS]; /* the time that the devices' busy_ns is out of */
	uint64_t samples_nr[TOTALS_SPANS];  /* of threads on a CPU */
	/* Of the processes' CPU time; unknown_cost: some of it was not measured. */
	double cost_ns[TOTALS_SPANS];
	bool unknown_cost[TOTALS_SPANS];
	bool gpu_estimated[TOTALS_SPANS]; /* what devices did, from windows of it */
	bool sampled;			  /* there are samples, and no operators */
	bool has_gpu;			  /* there was any GPU activity, or a call of CUDA */
	/* private */
	struct intern *texts;
	struct hash places[TOTALS_VIEWS]; /* name or thread -> row */
	struct hash held; /* what a process's allocator last reported for a device */
};

/* NULL: out of memory. */
struct live_totals *live_totals__new(void);
void live_totals__free(struct live_totals *y);

/* Begins a new last interval and adds a timeline to it. 0 or -ENOMEM. */
int live_totals__add(struct live_totals *y, const struct timeline *t);

/* Adds time that a thread ran on a CPU to the last interval. 0 or -ENOMEM. */
int live_totals__ran(struct live_totals *y, int64_t pid, uint32_t tid, const char *comm,
		     uint64_t ns);

/* A process has ended: it holds no memory of a GPU any more. */
void live_totals__gone(struct live_totals *y, int64_t pid);

/* Lost events in all timelines that were added. */
uint64_t live_totals__lost(const struct live_totals *y);

/* Forgets the sums, not what devices hold. */
void live_totals__reset(struct live_totals *y);

#endif /* GP_OUTPUT_SUMMARY_LIVE_TOTALS_H */
