/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Joins GPU work with the call that asked for it, by process and correlation id, and so with the
 * op. An id comes back after 2^32 calls: the last call before the work counts.
 */
#include "timeline/model/gpu.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "base/cleanup.h"
#include "timeline/model/build.h"

/* ---- order ---- */

static int sort_work(struct build *b)
{
	size_t nr = b->t->gpu.work.nr;
	CLEANUP(cleanup_free) struct sort_item *order = malloc((nr + 1) * sizeof(*order));
	CLEANUP(cleanup_free) struct tl_gpu *copy = malloc((nr + 1) * sizeof(*copy));
	int err;

	if (!order || !copy)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++) {
		copy[i] = b->t->gpu.work.items[i];
		order[i] = (struct sort_item){copy[i].start_ns, (uint32_t)i};
	}
	err = sort_items(order, nr);
	for (size_t i = 0; i < nr && !err; i++)
		b->t->gpu.work.items[i] = copy[order[i].index];
	return err;
}

/* ---- calls ---- */

/* Some CUPTI versions of CUDA 13.0 give the work of graphs a wrong id: such work has no call. */
static bool may_have_asked(const struct tl_api *api, const struct tl_gpu *g)
{
	return !g->graph || !api->name[0] || strstr(api->name, "GraphLaunch");
}

static void match(struct build *b, struct tl_gpu *g)
{
	struct tl_api *api;

	g->shown_start_ns = g->start_ns;
	g->shown_end_ns = g->end_ns;
	if (g->correlation_id)
		g->api = build_gpu_call(b, g->process, g->correlation_id, g->start_ns);
	if (g->api != TL_NONE && !may_have_asked(&b->t->gpu.api.items[g->api], g))
		g->api = TL_NONE;
	if (g->api == TL_NONE) {
		b->counts[TL_GPU_UNMATCHED]++;
		return;
	}
	api = &b->t->gpu.api.items[g->api];
	api->gpu_nr++;
	g->op = api->op;
	if (g->start_ns >= api->start_ns)
		return;
	b->counts[TL_GPU_EARLY]++;
	g->shown_start_ns = api->start_ns;
	if (g->shown_end_ns < g->shown_start_ns)
		g->shown_end_ns = g->shown_start_ns;
}

/* Drops work that was asked for outside of windows of CUPTI's records: it was seen by chance. */
static void drop_outside(struct build *b)
{
	struct tl_gpus *gpu = &b->t->gpu;
	size_t kept = 0;

	for (size_t i = 0; i < gpu->work.nr; i++) {
		const struct tl_gpu *g = &gpu->work.items[i];

		if (timeline__window_at(b->t, timeline__asked_ns(b->t, g)) != TL_NONE)
			gpu->work.items[kept++] = *g;
		else if (g->api != TL_NONE)
			gpu->api.items[g->api].gpu_nr--;
	}
	gpu->work.nr = kept;
}

static bool is_launch(const char *name)
{
	static const char *const begin[] = {"cudaLaunchKernel", "cudaLaunchCooperativeKernel",
					    "cuLaunchKernel", "cuLaunchCooperativeKernel"};

	for (size_t i = 0; i < sizeof(begin) / sizeof(*begin); i++)
		if (!strncmp(name, begin[i], strlen(begin[i])))
			return true;
	return false;
}

/* Counts a launch whose kernel is missing. A launch that CUPTI did not see is no loss of CUPTI's;
 * it counts where its process has GPU work, whose times could be taken for all. */
static void count_launch(struct build *b, const bool *has_work, const struct tl_api *api)
{
	if (b->windows.of_gpu && timeline__window_at(b->t, api->start_ns) == TL_NONE)
		return;
	if (!api->correlation_id)
		b->t->gpu.launches_unseen_nr += has_work[b->t->threads.items[api->thread].process];
	else if (!api->gpu_nr)
		b->counts[TL_LAUNCH_UNMATCHED]++;
}

/* Counts the launches whose kernels are missing. What a thread launches while it captures a stream
 * becomes part of a graph, and runs with that. */
static int count_launches(struct build *b)
{
	CLEANUP(cleanup_free)
	bool *has_work = calloc(b->t->processes.nr + 1, sizeof(*has_work));
	uint32_t thread = TL_NONE;
	bool capturing = false;

	if (!has_work)
		return -ENOMEM;
	for (size_t i = 0; i < b->t->gpu.work.nr; i++)
		has_work[b->t->gpu.work.items[i].process] = true;
	for (size_t i = 0; i < b->t->gpu.api.nr; i++) {
		const struct tl_api *api = &b->t->gpu.api.items[i];

		if (api->thread != thread || !strncmp(api->name, "cudaStreamEndCapture", 20) ||
		    !strncmp(api->name, "cuStreamEndCapture", 18))
			capturing = false;
		else if (!strncmp(api->name, "cudaStreamBeginCapture", 22) ||
			 !strncmp(api->name, "cuStreamBeginCapture", 20))
			capturing = true;
		thread = api->thread;
		if (!capturing && is_launch(api->name))
			count_launch(b, has_work, api);
	}
	return 0;
}

/* ---- ops ---- */

/* torch.profiler gives no GPU time to asynchronous ops. */
static int sum_up(struct build *b)
{
	const struct timeline *t = b->t;
	struct tl_op_sums *sums;

	if (!t->gpu.work.nr)
		return 0;
	sums = build_op_sums(b);
	if (!sums)
		return -ENOMEM;
	for (size_t i = 0; i < t->gpu.work.nr; i++) {
		const struct tl_gpu *g = &t->gpu.work.items[i];

		if (g->op != TL_NONE && tl_gpu_is_work(g))
			sums[g->op].self_cuda_ns += g->end_ns - g->start_ns;
	}
	for (size_t i = t->ops.nr; i-- > 0;) {
		sums[i].cuda_ns += sums[i].self_cuda_ns;
		if (t->ops.items[i].parent != TL_NONE)
			sums[t->ops.items[i].parent].cuda_ns += sums[i].cuda_ns;
	}
	return 0;
}

/* ---- streams and devices ---- */

struct uses {
	struct build *b;
	struct hash stream_of; /* hash of process, device, stream -> one more than its index */
	struct hash device_of;
	struct hash context_of; /* process and context -> device */
};

static void uses__done(struct uses *u)
{
	hash__done(&u->stream_of);
	hash__done(&u->device_of);
	hash__done(&u->context_of);
}

/* Adds work to a union. Work comes by start, so the union grows by what lies after all earlier
 * work. */
static void add_use(const struct build *b, struct tl_gpu_use *use, const struct tl_gpu *g,
		    const struct tl_api *api)
{
	uint64_t from_ns = use->nr && use->last_ns > g->start_ns ? use->last_ns : g->start_ns;
	double stands_for = timeline__gpu_stands_for(b->t, g);
	uint64_t queue_ns;

	if (use->nr++)
		use->idle_ns += build_gpu_seen_ns(b, use->last_ns, g->start_ns);
	else
		use->first_ns = g->start_ns;
	use->sum_ns += g->end_ns - g->start_ns;
	use->whole_nr += stands_for;
	use->whole_kernels_nr += g->kind == TL_GPU_KERNEL ? stands_for : 0;
	if (g->end_ns > from_ns) {
		use->busy_ns += g->end_ns - from_ns;
		use->whole_busy_ns += stands_for * (double)(g->end_ns - from_ns);
	}
	if (g->end_ns > use->last_ns)
		use->last_ns = g->end_ns;
	if (!api || g->start_ns < api->start_ns)
		return;
	queue_ns = g->start_ns - api->start_ns;
	use->queue_nr++;
	use->queue_sum_ns += queue_ns;
	if (queue_ns > use->queue_max_ns)
		use->queue_max_ns = queue_ns;
}

/* Finds or makes the entry of a stream or device. The hash leads to the first with its value;
 * others follow. */
static bool is_use(const struct tl_gpu_use *use, const struct tl_gpu *g, uint32_t stream)
{
	return use->process == g->process && use->device == g->device && use->stream == stream;
}

static int note_work(struct uses *u, const struct tl_gpu *g, bool whole)
{
	struct tl_gpus *gpu = &u->b->t->gpu;
	uint32_t stream = whole ? TL_NONE : g->stream;
	uint64_t key = hash_mix((uint64_t)g->process << 32 | g->device) ^ stream;
	struct hash *of = whole ? &u->device_of : &u->stream_of;
	const struct tl_api *api = g->api == TL_NONE ? NULL : &gpu->api.items[g->api];
	struct tl_gpu_use new = {.process = g->process, .device = g->device, .stream = stream};
	struct tl_gpu_use *use;
	const uint64_t *known;
	int err;

	while ((known = hash__find(of, key))) {
		use = whole ? &gpu->devices.items[*known] : &gpu->streams.items[*known];
		if (is_use(use, g, stream)) {
			add_use(u->b, use, g, api);
			return 0;
		}
		key = hash_mix(key + 1);
	}
	add_use(u->b, &new, g, api);
	err = hash__set(of, key, whole ? gpu->devices.nr : gpu->streams.nr);
	if (err)
		return err;
	return whole ? vec_push(&gpu->devices, new) : vec_push(&gpu->streams, new);
}

static uint64_t context_key(const struct tl_gpu *g)
{
	return (uint64_t)g->process << 32 | g->context;
}

/* Assigns contexts to devices. A context of two devices is impossible, and gets none. */
static int note_context(struct uses *u, const struct tl_gpu *g)
{
	const uint64_t *known = hash__find(&u->context_of, context_key(g));

	if (known && *known == g->device)
		return 0;
	return hash__set(&u->context_of, context_key(g), known ? TL_NONE : g->device);
}

static int use_work(struct uses *u)
{
	struct tl_gpus *gpu = &u->b->t->gpu;
	int err = 0;

	for (size_t i = 0; i < gpu->work.nr && !err; i++) {
		const struct tl_gpu *g = &gpu->work.items[i];

		if (!tl_gpu_is_work(g))
			continue;
		err = note_work(u, g, false);
		if (!err)
			err = note_work(u, g, true);
		if (!err)
			err = note_context(u, g);
	}
	return err;
}

/* Sets the device of synchronisations, which name only their context. */
static void find_devices(struct uses *u)
{
	struct tl_gpus *gpu = &u->b->t->gpu;

	for (size_t i = 0; i < gpu->work.nr; i++) {
		struct tl_gpu *g = &gpu->work.items[i];
		const uint64_t *known;

		if (tl_gpu_is_work(g))
			continue;
		known = hash__find(&u->context_of, context_key(g));
		if (known)
			g->device = (uint32_t)*known;
		u->b->counts[TL_SYNC_DEVICE_UNKNOWN] += g->device == TL_NONE;
	}
}

int build_gpu(struct build *b)
{
	CLEANUP(uses__done) struct uses u = {.b = b};
	int err = sort_work(b);

	for (size_t i = 0; i < b->t->gpu.work.nr && !err; i++)
		match(b, &b->t->gpu.work.items[i]);
	if (err)
		return err;
	if (b->windows.of_gpu)
		drop_outside(b);
	err = count_launches(b) ?: sum_up(b) ?: use_work(&u);
	if (err)
		return err;
	find_devices(&u);
	err = build_gpu_events(b);
	return err ? err : build_gpu_lanes(b);
}
