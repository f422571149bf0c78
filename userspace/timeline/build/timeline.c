/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Building a timeline from a recording: the steps of build.h in order, then the losses.
 */
#include "timeline/model/timeline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "base/cleanup.h"
#include "timeline/model/build.h"
#include "timeline/read/estimate.h"

static const char *build_counter_name(enum tl_counter counter)
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

static void build__done(struct build *b)
{
	free(b->process_of);
	vec_done(&b->module_calls);
	vec_done(&b->tensors);
	vec_done(&b->tensor_words);
	hash__done(&b->tensors_of);
	vec_done(&b->schemas);
	hash__done(&b->schema_of);
	hash__done(&b->schema_of_op);
	hash__done(&b->thread_of);
	hash__done(&b->sampled_stack_of);
	hash__done(&b->pids);
	hash__done(&b->name_of);
	hash__done(&b->inputs_of);
	hash__done(&b->loss_of);
	vec_done(&b->names);
	vec_done(&b->parents);
	vec_done(&b->memory);
	vec_done(&b->apis);
	vec_done(&b->api_keys);
	vec_done(&b->cuda_events);
	hash__done(&b->gpu_name_of);
	hash__done(&b->ranks_of);
	hash__done(&b->clock_of);
	vec_done(&b->clocks);
	vec_done(&b->gpu_dark);
	vec_done(&b->gpu_unwanted);
	vec_done(&b->step_begins);
	vec_done(&b->step_places);
	vec_done(&b->missing);
	free(b->by_instance);
	free(b->oldest_parent);
	free(b->thread_ops);
}

void timeline__free(struct timeline *t)
{
	if (!t)
		return;
	vec_done(&t->processes);
	vec_done(&t->threads);
	vec_done(&t->ops);
	vec_done(&t->op_sums);
	vec_done(&t->memory);
	vec_done(&t->out_of_memory);
	vec_done(&t->inputs);
	vec_done(&t->modules);
	vec_done(&t->module_calls);
	vec_done(&t->python_calls);
	vec_done(&t->samples);
	vec_done(&t->sampled_stacks);
	vec_done(&t->stack_ops);
	vec_done(&t->pauses);
	vec_done(&t->windows);
	vec_done(&t->triggers);
	vec_done(&t->thread_stacks);
	vec_done(&t->python_gcs);
	vec_done(&t->steps);
	vec_done(&t->step_series);
	vec_done(&t->categories);
	vec_done(&t->losses);
	vec_done(&t->gpu.api);
	vec_done(&t->gpu.args);
	vec_done(&t->gpu.collectives);
	vec_done(&t->gpu.described);
	vec_done(&t->gpu.overhead);
	vec_done(&t->gpu.work);
	vec_done(&t->gpu.events);
	vec_done(&t->gpu.streams);
	vec_done(&t->gpu.devices);
	if (t->private)
		intern__free(t->private->intern);
	free(t->private);
	free(t);
}

static void cleanup_timeline(struct timeline **t)
{
	timeline__free(*t);
}

static struct timeline *timeline_alloc(const struct recording *rec)
{
	CLEANUP(cleanup_timeline) struct timeline *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->recording = rec;
	t->private = calloc(1, sizeof(*t->private));
	if (!t->private)
		return NULL;
	t->private->intern = intern__new();
	return t->private->intern ? TAKE(t) : NULL;
}

/* A recording that was cut, or lies, gets the window of its events. */
static void set_window(struct timeline *t, const struct build *b)
{
	uint64_t realtime_ns;
	bool any = b->first_ns <= b->last_ns;

	recording__window(t->recording, &t->start_ns, &t->end_ns, &realtime_ns);
	if (t->start_ns && realtime_ns >= t->start_ns && realtime_ns < TL_TIME_END_NS)
		t->realtime_offset_ns = realtime_ns - t->start_ns;
	if (!t->start_ns || t->start_ns >= TL_TIME_END_NS)
		t->start_ns = any ? b->first_ns : 0;
	if (t->end_ns < t->start_ns || t->end_ns >= TL_TIME_END_NS)
		t->end_ns = any && b->last_ns > t->start_ns ? b->last_ns : t->start_ns;
}

/* Of the window alone. */
static void add_pauses(struct timeline *t)
{
	for (size_t i = 0; i < t->pauses.nr; i++) {
		const struct tl_pause *p = &t->pauses.items[i];
		uint64_t from = p->start_ns > t->start_ns ? p->start_ns : t->start_ns;
		uint64_t to = p->end_ns < t->end_ns ? p->end_ns : t->end_ns;

		if (p->cpu && to > from)
			t->paused_ns += to - from;
	}
}

/* Adds to the counter of this name, which is made if there is none. */
static int add_loss(struct build *b, const char *name, uint64_t count)
{
	struct tl_loss loss = {.name = intern__str(b->t->private->intern, name), .count = count};
	const uint64_t *known;

	if (!loss.name)
		return -ENOMEM;
	known = hash__find(&b->loss_of, (uintptr_t)loss.name);
	if (known) {
		b->t->losses.items[*known].count += count;
		return 0;
	}
	if (hash__set(&b->loss_of, (uintptr_t)loss.name, b->t->losses.nr))
		return -ENOMEM;
	return vec_push(&b->t->losses, loss);
}

static int add_python_call_losses(struct build *b)
{
	int err = add_loss(b, "python_calls_unknown", b->calls_unknown_nr);

	err = err ? err : add_loss(b, "python_calls_cut", b->calls_cut_nr);
	err = err ? err : add_loss(b, "python_calls_crossing", b->calls_crossing_nr);
	return err ? err : add_loss(b, "python_calls_unplaced", b->calls_unplaced_nr);
}

/* Those of the contract first, in its order, then others that the recording has, then the join's.
 */
static int set_losses(struct build *b)
{
	int err = 0, end = b->t->gpu.any ? TL_COUNTER_NR : TL_API_TIME_INVALID;
	const struct recording *rec = b->t->recording;

	for (int i = 0; i < GP_LOSS_NR && !err; i++)
		err = add_loss(b, recording_loss_name(i), 0);
	for (size_t i = 0; i < recording__losses(rec) && !err; i++) {
		uint64_t count = 0;
		const char *name = recording__loss_at(rec, i, &count);

		err = add_loss(b, name, count);
	}
	for (int i = 0; i < end && !err; i++)
		err = add_loss(b, build_counter_name(i), b->counts[i]);
	if (!err && b->has_windows)
		err = add_loss(b, "window_cut", b->window_cut_nr);
	if (!err && b->has_windows)
		err = add_loss(b, "windows_unused", b->windows_unused_nr);
	/* Older recordings, and those without shapes, have nothing to say here. */
	if (!err && b->has_inputs)
		err = add_loss(b, "inputs_invalid", b->inputs_invalid_nr);
	if (!err && b->has_inputs)
		err = add_loss(b, "input_values", b->valueless_nr);
	if (!err && b->module_calls.nr)
		err = add_loss(b, "module_calls_invalid", b->module_calls_invalid_nr);
	if (!err && b->has_calls)
		err = add_python_call_losses(b);
	if (!err && b->t->sampled)
		err = add_loss(b, "sample_stackless", b->samples_stackless_nr);
	if (!err && b->t->sampled)
		err = add_loss(b, "sample_stack_cut", b->samples_cut_nr);
	if (!err && b->t->sampled)
		err = add_loss(b, "sample_stack_searched", b->samples_searched_nr);
	if (!err && b->t->has_categories)
		err = add_loss(b, "tensors_invalid", b->tensors_invalid_nr);
	if (!err && b->t->has_categories)
		err = add_loss(b, "tensors_device", b->tensors_device_nr);
	if (!err && b->t->has_categories)
		err = add_loss(b, "schemas_missing", b->schemas_missing_nr);
	return err;
}

static int build_all(struct build *b)
{
	int err;

	set_window(b->t, b);
	build_gpu_unwanted(b);
	build_window_weights(b);
	err = build_window_gaps(b);
	err = err ?: build_gpu_dark(b);
	if (err)
		return err;
	b->t->gpu_stands_for = b->has_gpu_windows ? estimate_expansion(b->t) : 0;
	b->t->gpu_estimated |= b->has_gpu_windows && b->t->gpu_stands_for != 1;
	b->t->gpu_unseen = b->has_window_marks && !b->t->windows.nr && timeline__wanted_ns(b->t);
	add_pauses(b->t);
	err = build_samples(b);
	if (!err)
		err = build_tree(b);
	if (!err)
		err = build_api(b);
	if (!err)
		err = build_collapse(b);
	if (!err)
		err = build_forward(b);
	if (!err)
		err = build_modules(b);
	if (!err)
		err = build_python_calls(b);
	if (!err)
		build_python_gcs(b);
	if (!err)
		err = build_flops(b);
	if (!err)
		err = build_gpu(b);
	if (!err)
		err = build_memory(b);
	if (!err)
		err = build_categories(b);
	if (err)
		return err;
	return set_losses(b);
}

static int new_timeline(struct recording *rec, bool show_steps, struct reason *why,
			struct timeline **ret_timeline)
{
	CLEANUP(cleanup_timeline) struct timeline *t = timeline_alloc(rec);
	CLEANUP(build__done) struct build b = {.t = t, .show_steps = show_steps};
	int err;

	if (!t)
		return reason_set(why, -ENOMEM, "out of memory");
	err = build_read(&b, rec);
	if (err && b.short_of.own)
		return reason_set(why, err,
				  "%llu of its events take %llu MB of "
				  "memory, and %llu MB are left, too little to join them; read it "
				  "where there is more, or record less at a time (--rotate, "
				  "--overhead, --steps)",
				  (unsigned long long)b.events_nr,
				  (unsigned long long)b.short_of.own >> 20,
				  (unsigned long long)b.short_of.left >> 20);
	if (err)
		return reason_set(why, err, "cannot read the recording's events: %s",
				  strerror(-err));
	err = build_all(&b);
	if (err)
		return reason_set(why, err, "cannot join the recording's events: %s",
				  strerror(-err));
	*ret_timeline = TAKE(t);
	return 0;
}

int timeline__new(struct recording *rec, struct reason *why, struct timeline **ret_timeline)
{
	return new_timeline(rec, recording__meta(rec, "steps") != NULL, why, ret_timeline);
}

int timeline__new_steps(struct recording *rec, struct reason *why, struct timeline **ret_timeline)
{
	return new_timeline(rec, true, why, ret_timeline);
}
