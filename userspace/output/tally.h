/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Numbers for views that go on: rows by operator, kernel, source line and thread, each with what
 * the last timeline has and with the sum over all that were added. Nothing of a timeline is kept.
 * Bounded: of each view at most TALLY_ROWS_MAX names get rows of their own, the others share one.
 */
#ifndef GP_OUTPUT_TALLY_H
#define GP_OUTPUT_TALLY_H

#include "base/hash.h"
#include "base/intern.h"
#include "base/vec.h"
#include "timeline/timeline.h"

#define TALLY_ROWS_MAX 20000
#define TALLY_OTHERS   "[other names]"

enum tally_view {
	TALLY_OPS = 0,	   /* the table's rows of CPU events, annotations included */
	TALLY_KERNELS = 1, /* kernels, copies and memsets */
	TALLY_LINES = 2,   /* lines of Python that called operators; needs stacks */
	TALLY_MEMORY = 3,  /* operators that allocated; needs memory */
	TALLY_THREADS = 4,
	TALLY_VIEWS = 5,
};

enum tally_value {
	TALLY_CALLS = 0, /* of ops or launches; of lines and threads: of operators */
	TALLY_SELF_CPU_NS = 1,
	TALLY_CPU_NS = 2,	/* with callees; of threads: in operators */
	TALLY_SELF_CUDA_NS = 3, /* GPU work; of kernels: theirs */
	TALLY_CUDA_NS = 4,
	TALLY_ALLOCATIONS = 5,
	TALLY_CPU_BYTES = 6,	  /* allocated, freed since or not */
	TALLY_CPU_KEPT_BYTES = 7, /* of these: not freed before the recording's end */
	TALLY_CUDA_BYTES = 8,	  /* the same of all GPUs */
	TALLY_CUDA_KEPT_BYTES = 9,
	TALLY_RAN_NS = 10,  /* of threads: on a CPU; from tally__ran() */
	TALLY_OFF_NS = 11,  /* on no CPU; as all times of CPUs, estimated where there are samples */
	TALLY_SAMPLES = 12, /* of threads on a CPU */
	TALLY_VALUES = 13,
};

enum tally_span { TALLY_LAST = 0, TALLY_SUM = 1, TALLY_SPANS = 2 };

struct tally_row {
	const char *name; /* the tally's; one line of UTF-8 */
	uint64_t values[TALLY_SPANS][TALLY_VALUES];
	int64_t pid;  /* of threads */
	uint32_t tid; /* of threads */
};

struct tally_device {
	uint32_t device;
	char name[64];
	uint64_t total_bytes; /* what the GPU has, 0: not told */
	uint64_t busy_ns[TALLY_SPANS];
	/* By PyTorch's allocator, over all processes, when it last told; 0: it has not. */
	uint64_t allocated_bytes, reserved_bytes;
};

/* What steps took, of the process that has most of them. */
struct tally_steps {
	uint64_t nr;
	uint64_t sum_ns, max_ns;
};

struct tally {
	VEC(struct tally_row) rows[TALLY_VIEWS];
	VEC(struct tally_device) devices; /* by number */
	VEC(struct tl_loss) losses;	  /* added up */
	struct tally_steps steps[TALLY_SPANS];
	uint64_t wall_ns[TALLY_SPANS];
	uint64_t gpu_wall_ns[TALLY_SPANS]; /* for which `busy_ns` of devices stands */
	uint64_t samples_nr[TALLY_SPANS];  /* of threads on a CPU */
	/* Of the processes' CPU time; unknown_cost: some of it was not measured. */
	double cost_ns[TALLY_SPANS];
	bool unknown_cost[TALLY_SPANS];
	bool gpu_estimated[TALLY_SPANS]; /* what devices did, from windows of it */
	bool sampled;			 /* there are samples, and no operators */
	bool has_gpu;			 /* there was any GPU activity, or a call of CUDA */
	/* private */
	struct intern *texts;
	struct hash places[TALLY_VIEWS]; /* name or thread -> row */
	struct hash held;		 /* what a process's allocator last told of a device */
};

/* NULL: out of memory. */
struct tally *tally__new(void);
void tally__free(struct tally *y);

/* Begins a new last interval and adds a timeline to it. 0 or -ENOMEM. */
int tally__add(struct tally *y, const struct timeline *t);

/* Adds time that a thread ran on a CPU to the last interval. 0 or -ENOMEM. */
int tally__ran(struct tally *y, int64_t pid, uint32_t tid, const char *comm, uint64_t ns);

/* A process has ended: it holds no memory of a GPU any more. */
void tally__gone(struct tally *y, int64_t pid);

/* Events that were lost, of all that was added. */
uint64_t tally__lost(const struct tally *y);

/* Forgets the sums, not what devices hold. */
void tally__reset(struct tally *y);

#endif /* GP_OUTPUT_TALLY_H */
