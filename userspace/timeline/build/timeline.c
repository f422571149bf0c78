/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Builds a timeline from a recording: the steps of build.h in order.
 */
#include "timeline/model/timeline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "base/cleanup.h"
#include "timeline/model/build.h"
#include "timeline/read/estimate.h"

static void build__done(struct build *b)
{
	free(b->context.process_of);
	vec_done(&b->modules.calls);
	vec_done(&b->tensors.of_ops);
	vec_done(&b->tensors.words);
	hash__done(&b->tensors.by_instance);
	vec_done(&b->schemas.all);
	hash__done(&b->schemas.of_name);
	hash__done(&b->schemas.of_op);
	hash__done(&b->context.thread_of);
	hash__done(&b->samples.stack_of);
	hash__done(&b->context.pids);
	hash__done(&b->reader.name_of);
	hash__done(&b->inputs.of);
	vec_done(&b->reader.names);
	vec_done(&b->tree.parents);
	vec_done(&b->memory);
	vec_done(&b->gpu.apis);
	vec_done(&b->gpu.api_keys);
	vec_done(&b->gpu.events);
	hash__done(&b->gpu.name_of);
	hash__done(&b->gpu.ranks_of);
	hash__done(&b->gpu.clock_of);
	vec_done(&b->gpu.clocks);
	vec_done(&b->windows.gpu_unobserved);
	vec_done(&b->windows.gpu_unwanted);
	vec_done(&b->steps.begins);
	vec_done(&b->steps.places);
	vec_done(&b->tree.missing);
	free(b->tree.by_instance);
	free(b->tree.oldest_parent);
	free(b->tree.thread_ops);
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

/* Sets the window. A recording that was cut, or lies, gets the window of its events. */
static void set_window(struct timeline *t, const struct build *b)
{
	uint64_t realtime_ns;
	bool any = b->context.first_ns <= b->context.last_ns;

	recording__window(t->recording, &t->start_ns, &t->end_ns, &realtime_ns);
	if (t->start_ns && realtime_ns >= t->start_ns && realtime_ns < TL_TIME_END_NS)
		t->realtime_offset_ns = realtime_ns - t->start_ns;
	if (!t->start_ns || t->start_ns >= TL_TIME_END_NS)
		t->start_ns = any ? b->context.first_ns : 0;
	if (t->end_ns < t->start_ns || t->end_ns >= TL_TIME_END_NS)
		t->end_ns =
			any && b->context.last_ns > t->start_ns ? b->context.last_ns : t->start_ns;
}

/* Sums up the pauses within the window. */
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

static int build_all(struct build *b)
{
	int err;

	set_window(b->t, b);
	build_gpu_unwanted(b);
	build_window_weights(b);
	err = build_window_gaps(b);
	err = err ?: build_gpu_unobserved(b);
	if (err)
		return err;
	b->t->gpu_stands_for = b->windows.of_gpu ? estimate_expansion(b->t) : 0;
	b->t->gpu_estimated |= b->windows.of_gpu && b->t->gpu_stands_for != 1;
	b->t->gpu_unseen = b->windows.any_marks && !b->t->windows.nr && timeline__wanted_ns(b->t);
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
	return build_losses(b);
}

static int new_timeline(struct recording *rec, bool show_steps, struct reason *why,
			struct timeline **ret_timeline)
{
	CLEANUP(cleanup_timeline) struct timeline *t = timeline_alloc(rec);
	CLEANUP(build__done) struct build b = {.t = t, .steps.show = show_steps};
	int err;

	if (!t)
		return reason_set(why, -ENOMEM, "out of memory");
	err = build_read(&b, rec);
	if (err && b.reader.short_of.own)
		return reason_set(why, err,
				  "%llu of its events take %llu MB of "
				  "memory, and %llu MB are left, too little to join them; read it "
				  "where there is more, or record less at a time (--rotate, "
				  "--overhead, --steps)",
				  (unsigned long long)b.reader.events_nr,
				  (unsigned long long)b.reader.short_of.own >> 20,
				  (unsigned long long)b.reader.short_of.left >> 20);
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
