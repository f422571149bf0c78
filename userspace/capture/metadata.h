/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * What a recording says beside its events: of the machine, the capture and its options at the
 * beginning, what was counted in its time at the end.
 */
#ifndef GP_CAPTURE_METADATA_H
#define GP_CAPTURE_METADATA_H

#include "base/vec.h"
#include "capture/control/control.h"

/* What counts up while a capture goes on; a recording says what was added in its time. */
struct totals {
	uint64_t losses[GP_LOSS_NR];
	uint64_t inputs_lost_nr; /* ops whose inputs found no place */
	uint64_t probe_hits, probe_hits_stepped;
	uint64_t collector_ops_nr;
	uint64_t collector_memory_nr;
	uint64_t sampler_ns;
};

/* A key and value of the user's own. */
struct description {
	char *key, *value;
};

struct metadata {
	struct control *control; /* borrowed, with all it leads to */
	char id[17];		 /* of the capture, the same in all its recordings */
	VEC(struct description) descriptions;
	struct totals reported; /* by the recordings that have ended */
	struct totals ending;	/* as of the recording that ends */
};

/* `m` is all zero. 0 or -errno. */
int metadata__init(struct metadata *m, struct control *control);
void metadata__done(struct metadata *m);

/* For a recording_set: `arg` is a struct metadata. See struct recording_hooks. */
int metadata__describe(void *arg, struct segment *s);
int metadata__write_losses(void *arg, struct segment *s);
int metadata__finish(void *arg, struct segment *s);
void metadata__finished(void *arg);

/* Adds a key and value, copied, for all recordings from now on and for the one in progress. 0 or
 * -errno. */
int metadata__add(struct metadata *m, const char *key, const char *value);

/* All counters as they are now. */
void metadata__totals(const struct metadata *m, struct totals *ret_totals);

#endif /* GP_CAPTURE_METADATA_H */
