/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Adds up all recordings, process by process: counters that only grow, in memory that does not. A
 * bounded number of operators per process gets a series of its own; the rest count as one. An
 * operator that gets its series later starts there at zero, so that no counter ever falls. Not
 * thread-safe: the owner locks.
 */
#ifndef GP_DAEMON_TOTALS_H
#define GP_DAEMON_TOTALS_H

#include "base/buf.h"
#include "base/vec.h"
#include "timeline/model/timeline.h"

#include <stdbool.h>
#include <stdint.h>

#define TOTALS_OPS	  50 /* with series of their own, per process */
#define TOTALS_DEVICES	  64 /* per process */
#define TOTALS_PROCESSES  4096
#define TOTALS_LOSSES	  256
#define TOTALS_NAME_BYTES 256
#define TOTALS_OTHER	  "other" /* stands for the rest of the operators */
#define TOTALS_BUCKETS	  15

struct total_op {
	char *name;
	uint64_t calls, cpu_ns, cuda_ns;
	uint64_t samples_nr, estimated_ns, off_ns; /* by samples */
	uint64_t seen;				   /* in which recording last */
};

struct total_device {
	char name[32]; /* "cpu", "cuda:0" */
	bool has_memory, has_allocator, has_work;
	uint64_t allocations_nr, allocated_bytes, refused_nr;
	int64_t held_bytes; /* since the capture began */
	uint64_t allocator_bytes, reserved_bytes;
	uint64_t kernels_nr, work_nr, busy_ns;
};

struct total_process {
	int32_t pid;
	uint64_t start_boot_ns;
	char comm[17];
	uint64_t seen_ns; /* when it was last in a recording */
	VEC(struct total_op) ops;
	struct total_op other;
	VEC(struct total_device) devices;
	uint64_t steps_nr, steps_ns;
	uint64_t buckets[TOTALS_BUCKETS]; /* of steps as long as totals_bounds_ns[] or shorter */
	/* The end of the last step, by what marked it: the next step may end in the next
	 * recording. */
	uint64_t edge_ns;
	char marker[TOTALS_NAME_BYTES];
};

struct total_loss {
	char *name;
	uint64_t nr;
};

struct totals {
	VEC(struct total_process *) processes;
	VEC(struct total_loss) losses;
	uint64_t recordings_nr, events_nr, recorded_ns;
	uint64_t gpu_unseen_ns; /* of recorded_ns: budgets allowed for no look at GPUs */
	bool sampled;		/* recordings are of samples: they have no calls and no steps */
	uint64_t capture_nr;	/* of the last recording */
	uint64_t dropped_nr;	/* processes and devices beyond the bounds, which are not counted */
};

/* Upper bounds of the steps' buckets; the last one is UINT64_MAX. */
extern const uint64_t totals_bounds_ns[TOTALS_BUCKETS];

struct totals_part {
	uint64_t events_nr, capture_nr;
	uint64_t now_ns; /* CLOCK_MONOTONIC */
};

void totals__done(struct totals *t);

/* Adds a recording's timeline. 0, or -ENOMEM: then a part of it is missing. */
int totals__add(struct totals *t, const struct timeline *tl, const struct totals_part *part);

/* Appends the metrics in Prometheus' text format. */
void totals__text(const struct totals *t, struct buf *out);

/* Append the metrics of others: a family's head, and a sample without labels or with one. */
void metrics_family(struct buf *out, const char *name, const char *type, const char *help);
void metrics_count(struct buf *out, const char *name, const char *label, const char *value,
		   uint64_t count);
void metrics_seconds(struct buf *out, const char *name, uint64_t ns);

#endif /* GP_DAEMON_TOTALS_H */
