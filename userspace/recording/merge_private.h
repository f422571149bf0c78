/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The state of a merge, for the files of merge*.c.
 */
#ifndef GP_RECORDING_MERGE_PRIVATE_H
#define GP_RECORDING_MERGE_PRIVATE_H

#include "base/bits.h"
#include "base/hash.h"
#include "base/intern.h"
#include "base/vec.h"
#include "recording/merge.h"

#include <stdbool.h>

/* Maps the parts' numbers to the result's. Recordings of one capture share one map. */
struct numbers {
	struct hash frames, stacks, inputs, threads;
	struct bits emitted_stacks, emitted_inputs; /* of the result: already written */
	uint64_t unprobed_nr;
};

struct part {
	struct recording *rec;
	const char *boot_id; /* "": not known */
	uint64_t start_ns, end_ns;
	int64_t to_realtime_ns;
	int64_t shift_ns; /* added to its times */
	struct hash processes, names;
	struct numbers own;
	struct numbers *numbers; /* `own`, or that of the first part of its capture */
};

struct merged_loss {
	const char *name;
	uint64_t count;
};

struct merge {
	struct recording_writer *w;
	const struct merge_clocks *clocks; /* NULL: the times of day are all there is */
	struct reason *why;
	VEC(struct part) parts;
	struct part *part; /* the one being merged */
	struct intern *texts;
	struct hash process_of; /* interned identity -> number */
	struct hash name_of;	/* interned name and overload -> number */
	struct hash loss_of;	/* interned name -> index in losses */
	VEC(struct merged_loss) losses;
	uint32_t processes_nr, names_nr, frames_nr, stacks_nr, inputs_nr, threads_nr;
	uint64_t dropped_nr; /* events whose shifted time overflows */
};

/* Whether all parts are of one machine since its start. */
bool merge_one_clock(const struct merge *m);

/* Write the result's description and its counters. 0 or -errno. */
int merge_write_metas(struct merge *m);
/* Keys about the capture's cost: whether `key` is one, and writing all of them. */
bool merge_is_cost(const char *key);
int merge_write_costs(struct merge *m);
int merge_write_losses(struct merge *m);

#endif /* GP_RECORDING_MERGE_PRIVATE_H */
