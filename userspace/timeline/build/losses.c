/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Gathers the counters of what is missing: those of the recording, then those of the join. Counters
 * of a feature are there only where the recording has that feature.
 */
#include "timeline/model/build.h"

#include <errno.h>

#include "base/banned.h"
#include "base/cleanup.h"

struct losses {
	struct timeline *t;
	struct hash index_of; /* interned name -> of timeline.losses */
	int err;	      /* the first one: nothing is added from then on */
};

static void losses__done(struct losses *l)
{
	hash__done(&l->index_of);
}

static const char *counter_name(enum tl_counter counter)
{
	static const char *const names[] = {
		[TL_TIME_INVALID] = "time_invalid",
		[TL_INSTANCE_DUPLICATE] = "instance_duplicate",
		[TL_PARENT_MISSING] = "parent_missing",
		[TL_NESTING_REPAIRED] = "nesting_repaired",
		[TL_PROCESS_UNKNOWN] = "process_unknown",
		[TL_MEMORY_OP_MISSING] = "memory_op_missing",
		[TL_MEMORY_INVALID] = "memory_invalid",
		[TL_FREE_LOST] = "free_lost",
		[TL_FREE_UNKNOWN] = "free_unknown",
		[TL_API_TIME_INVALID] = "api_time_invalid",
		[TL_API_OP_MISSING] = "api_op_missing",
		[TL_API_UNJOINED] = "api_unjoined",
		[TL_GPU_TIME_INVALID] = "gpu_time_invalid",
		[TL_GPU_UNMATCHED] = "gpu_unmatched",
		[TL_LAUNCH_UNMATCHED] = "launch_unmatched",
		[TL_GPU_EARLY] = "gpu_early",
		[TL_GPU_NOT_DRAWN] = "gpu_not_drawn",
		[TL_SYNC_DEVICE_UNKNOWN] = "sync_device_unknown",
	};

	return names[counter];
}

/* Adds to the counter of this name, which is made if there is none. */
static void add(struct losses *l, const char *name, uint64_t count)
{
	struct tl_loss loss = {.name = intern__str(l->t->private->intern, name), .count = count};
	const uint64_t *known;

	if (l->err)
		return;
	known = loss.name ? hash__find(&l->index_of, (uintptr_t)loss.name) : NULL;
	if (known) {
		l->t->losses.items[*known].count += count;
		return;
	}
	if (!loss.name || hash__set(&l->index_of, (uintptr_t)loss.name, l->t->losses.nr) ||
	    vec_push(&l->t->losses, loss))
		l->err = -ENOMEM;
}

/* Those of wire.h in its order, then others that the recording has. */
static void add_recorded(struct losses *l)
{
	const struct recording *rec = l->t->recording;

	for (int i = 0; i < GP_LOSS_NR; i++)
		add(l, recording_loss_name(i), 0);
	for (size_t i = 0; i < recording__losses(rec); i++) {
		uint64_t count = 0;
		const char *name = recording__loss_at(rec, i, &count);

		add(l, name, count);
	}
}

static void add_ops(struct losses *l, const struct build *b)
{
	if (b->windows.exact) {
		add(l, "window_cut", b->windows.cut_nr);
		add(l, "windows_unused", b->windows.unused_nr);
	}
	/* Older recordings, and those without shapes, have nothing to say here. */
	if (b->inputs.any) {
		add(l, "inputs_invalid", b->inputs.invalid_nr);
		add(l, "input_values", b->inputs.valueless_nr);
	}
	if (b->modules.calls.nr)
		add(l, "module_calls_invalid", b->modules.invalid_nr);
	if (b->python_calls.any) {
		add(l, "python_calls_unknown", b->python_calls.unknown_nr);
		add(l, "python_calls_cut", b->python_calls.cut_nr);
		add(l, "python_calls_crossing", b->python_calls.crossing_nr);
		add(l, "python_calls_unplaced", b->python_calls.unplaced_nr);
	}
}

int build_losses(struct build *b)
{
	int end = b->t->gpu.any ? TL_COUNTER_NR : TL_API_TIME_INVALID;
	CLEANUP(losses__done) struct losses l = {.t = b->t};

	add_recorded(&l);
	for (int i = 0; i < end; i++)
		add(&l, counter_name(i), b->counts[i]);
	add_ops(&l, b);
	if (b->t->sampled) {
		add(&l, "sample_stackless", b->samples.stackless_nr);
		add(&l, "sample_stack_cut", b->samples.cut_nr);
		add(&l, "sample_stack_searched", b->samples.searched_nr);
	}
	if (b->t->has_categories) {
		add(&l, "tensors_invalid", b->tensors.invalid_nr);
		add(&l, "tensors_device", b->tensors.device_nr);
		add(&l, "schemas_missing", b->schemas.missing_nr);
	}
	return l.err;
}
