/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * GPUs in a Perfetto trace: devices under their process, streams under their device. Work that
 * overlaps on a stream lies on further rows beside it.
 */
#include "output/perfetto/perfetto.h"
#include "timeline/analysis/gpu_ranges.h"
#include "timeline/model/sort.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/banned.h"
#include "base/cleanup.h"
#include "base/hash.h"

/* `lane` of rows that hold no work; that of work is far below. */
#define LANE_EVENTS	 TL_NONE
#define LANE_ANNOTATIONS 1000

/* Annotations that overlap on one stream; more are marks without an end. */
#define ANNOTATION_LANES 32

struct gpus {
	struct perfetto *p;
	const struct timeline *t;
	struct hash tracks; /* that the reader knows */
	struct hash end_of; /* row of annotations -> when its last one ends */
	int err;
};

static void gpus__done(struct gpus *s)
{
	hash__done(&s->tracks);
	hash__done(&s->end_of);
}

/* True the first time. */
static bool is_new(struct gpus *s, uint64_t uuid)
{
	if (s->err || hash__find(&s->tracks, uuid))
		return false;
	s->err = hash__set(&s->tracks, uuid, 1);
	return !s->err;
}

/* ---- rows ---- */

/* A row of a stream; `lane` and `more` tell it from others of that stream. */
struct row {
	uint32_t process, device, stream, lane;
	const char *more;
};

static uint64_t device_track(uint32_t process, uint32_t device)
{
	return perfetto_number(PERFETTO_OF_DEVICE, hash_mix((uint64_t)process << 32 | device) >> 8);
}

static uint64_t row_track(const struct row *r)
{
	uint64_t device = hash_mix((uint64_t)r->process << 32 | r->device);
	uint64_t row = hash_mix(device + ((uint64_t)r->stream << 32 | r->lane));

	return perfetto_number(PERFETTO_OF_STREAM, row >> 8);
}

/* The number of the row's track, which the reader then knows. */
static uint64_t known_track(struct gpus *s, const struct row *r)
{
	uint64_t uuid = row_track(r), device = device_track(r->process, r->device);
	struct perfetto_track track = {.uuid = device,
				       .parent = perfetto_number(PERFETTO_OF_PROCESS, r->process)};
	char name[64];

	if (!is_new(s, uuid))
		return uuid;
	if (is_new(s, device)) {
		(void)snprintf(name, sizeof(name), "GPU %" PRIu32, r->device);
		track.name = name;
		perfetto__track(s->p, &track);
	}
	if (r->stream == TL_NONE)
		(void)snprintf(name, sizeof(name), "synchronisation");
	else
		(void)snprintf(name, sizeof(name), "stream %" PRIu32 "%s", r->stream, r->more);
	track = (struct perfetto_track){.uuid = uuid, .parent = device, .name = name};
	perfetto__track(s->p, &track);
	return uuid;
}

static void put_slice(struct gpus *s, const struct perfetto_event *e, uint64_t end_ns)
{
	const struct perfetto_event end = {
		.type = PERFETTO_END, .track = e->track, .time_ns = end_ns};

	perfetto__event(s->p, e);
	perfetto__event(s->p, &end);
}

/* ---- work ---- */

static void triple(struct perfetto_event *e, const char *const names[3], const uint32_t n[3])
{
	for (int i = 0; i < 3; i++)
		perfetto_u64(e, names[i], n[i]);
}

static void work_args(struct perfetto_event *e, const struct tl_gpu *g)
{
	static const char *const grid[] = {"grid x", "grid y", "grid z"};
	static const char *const block[] = {"block x", "block y", "block z"};

	perfetto_u64(e, "device", g->device);
	perfetto_u64(e, "context", g->context);
	if (g->stream != TL_NONE)
		perfetto_u64(e, "stream", g->stream);
	perfetto_u64(e, "correlation", tl_call_id(g->process, g->correlation_id));
	if (g->kind == TL_GPU_KERNEL) {
		perfetto_u64(e, "registers per thread", g->kernel.registers);
		perfetto_i64(e, "shared memory", g->kernel.shared_bytes);
		triple(e, grid, g->kernel.grid);
		triple(e, block, g->kernel.block);
	} else if (g->kind != TL_GPU_SYNC) {
		perfetto_u64(e, "bytes", g->memory.bytes);
	} else if (tl_gpu_waits_for_event(g)) {
		perfetto_u64(e, "event", g->sync.event);
		if (g->sync.record_correlation_id)
			perfetto_u64(e, "event recorded by",
				     tl_call_id(g->process, g->sync.record_correlation_id));
		if (g->sync.record_stream != TL_NONE)
			perfetto_u64(e, "event of stream", g->sync.record_stream);
	}
}

static void put_work(struct gpus *s, const struct tl_gpu *g)
{
	static const char *const categories[] = {
		[TL_GPU_KERNEL] = "kernel",
		[TL_GPU_COPY] = "gpu_memcpy",
		[TL_GPU_SET] = "gpu_memset",
		[TL_GPU_SYNC] = "cuda_sync",
	};
	const struct row row = {g->process, g->device, g->stream, g->lane,
				!g->lane	    ? ""
				: tl_gpu_is_work(g) ? " (overlap)"
						    : " (sync)"};
	struct perfetto_event e = {
		.type = PERFETTO_BEGIN,
		.track = known_track(s, &row),
		.time_ns = g->shown_start_ns,
		.category = categories[g->kind],
		.name = g->name,
	};

	work_args(&e, g);
	if (g->op != TL_NONE)
		perfetto_text(&e, "op", s->t->ops.items[g->op].name);
	if (g->api != TL_NONE)
		e.flows[e.flows_nr++] = perfetto_launch_flow(g->process, g->correlation_id);
	put_slice(s, &e, g->shown_end_ns);
}

/* Where the GPU came to it: beside its stream's work, so that packets of each row go on in time. */
static void put_event(struct gpus *s, const struct tl_cuda_event *c)
{
	const struct row row = {c->process, c->device, c->stream, LANE_EVENTS, " (events)"};
	struct perfetto_event e = {
		.type = PERFETTO_INSTANT,
		.track = known_track(s, &row),
		.time_ns = c->time_ns,
		.category = "cuda_event",
		.name = "cudaEvent",
	};

	perfetto_u64(&e, "device", c->device);
	perfetto_u64(&e, "context", c->context);
	perfetto_u64(&e, "stream", c->stream);
	perfetto_u64(&e, "correlation", tl_call_id(c->process, c->correlation_id));
	perfetto_u64(&e, "event", c->event);
	if (c->op != TL_NONE)
		perfetto_text(&e, "op", s->t->ops.items[c->op].name);
	perfetto__event(s->p, &e);
}

/* ---- annotations ---- */

/* Whether a row was free for it, which it then takes; else `row` is the one of marks. */
static bool choose_lane(struct gpus *s, const struct gpu_range *r, struct row *row)
{
	for (uint32_t i = 0; i < ANNOTATION_LANES; i++) {
		const uint64_t *end_ns;

		row->lane = LANE_ANNOTATIONS + i;
		end_ns = hash__find(&s->end_of, row_track(row));
		if (end_ns && *end_ns > r->start_ns)
			continue;
		s->err = hash__set(&s->end_of, row_track(row), r->end_ns);
		return true;
	}
	row->lane = LANE_ANNOTATIONS + ANNOTATION_LANES;
	return false;
}

static void put_annotation(struct gpus *s, const struct gpu_range *r)
{
	struct row row = {r->process, r->device, r->stream, 0, " (annotations)"};
	bool fits = choose_lane(s, r, &row);
	struct perfetto_event e = {
		.type = fits ? PERFETTO_BEGIN : PERFETTO_INSTANT,
		.track = known_track(s, &row),
		.time_ns = r->start_ns,
		.category = "gpu_user_annotation",
		.name = s->t->ops.items[r->op].name,
	};

	perfetto_u64(&e, "device", r->device);
	perfetto_u64(&e, "stream", r->stream);
	if (fits) {
		put_slice(s, &e, r->end_ns);
		return;
	}
	perfetto_u64(&e, "duration ns", r->end_ns - r->start_ns);
	perfetto__event(s->p, &e);
}

static int put_annotations(struct gpus *s)
{
	struct gpu_ranges r;
	int err = gpu_ranges__find(s->t, true, &r);
	CLEANUP(cleanup_free) struct sort_item *order = calloc(r.items.nr + 1, sizeof(*order));

	err = err || order ? err : -ENOMEM;
	for (size_t i = 0; i < r.items.nr && !err; i++)
		order[i] = (struct sort_item){r.items.items[i].start_ns, (uint32_t)i};
	err = err ? err : sort_items(order, r.items.nr);
	for (size_t i = 0; i < r.items.nr && !err; i++) {
		put_annotation(s, &r.items.items[order[i].index]);
		err = s->err;
	}
	gpu_ranges__done(&r);
	return err;
}

/* ---- what they are ---- */

static void version(struct perfetto_event *e, const char *key, uint32_t reported)
{
	if (reported)
		perfetto_u64(e, key, reported);
}

/* A mark on the row of each device that did something, named as deviceProperties in Kineto's. */
static void put_device(struct gpus *s, const struct tl_device *device)
{
	const struct gp_ev_device *d = &device->reported;
	struct perfetto_event e = {
		.type = PERFETTO_INSTANT,
		.track = device_track(device->process, d->device),
		.time_ns = s->t->start_ns,
		.category = "device_properties",
		.name = device->name,
	};

	if (!hash__find(&s->tracks, e.track))
		return;
	perfetto_u64(&e, "id", d->device);
	perfetto_u64(&e, "totalGlobalMem", d->memory_bytes);
	perfetto_u64(&e, "computeMajor", d->major);
	perfetto_u64(&e, "computeMinor", d->minor);
	perfetto_u64(&e, "maxThreadsPerBlock", d->threads_per_block);
	perfetto_u64(&e, "maxThreadsPerMultiprocessor", d->threads_per_sm);
	perfetto_u64(&e, "regsPerBlock", d->registers_per_block);
	perfetto_u64(&e, "warpSize", d->warp_threads);
	perfetto_u64(&e, "sharedMemPerBlock", d->shared_per_block);
	perfetto_u64(&e, "numSms", d->sms);
	perfetto_u64(&e, "regsPerMultiprocessor", d->registers_per_sm);
	perfetto_u64(&e, "sharedMemPerBlockOptin", d->shared_per_block_optin);
	perfetto_u64(&e, "sharedMemPerMultiprocessor", d->shared_per_sm);
	version(&e, "cupti_version", d->cupti_version);
	version(&e, "cuda_runtime_version", d->runtime_version);
	version(&e, "cuda_driver_version", d->driver_version);
	perfetto__event(s->p, &e);
}

int perfetto_gpu(struct perfetto *p, const struct timeline *t)
{
	CLEANUP(gpus__done) struct gpus s = {.p = p, .t = t};

	for (size_t i = 0; i < t->gpu.work.nr && !s.err; i++)
		if (t->gpu.work.items[i].lane != TL_NONE)
			put_work(&s, &t->gpu.work.items[i]);
	for (size_t i = 0; i < t->gpu.events.nr && !s.err; i++)
		put_event(&s, &t->gpu.events.items[i]);
	s.err = s.err ? s.err : put_annotations(&s);
	for (size_t i = 0; i < t->gpu.described.nr && !s.err; i++)
		put_device(&s, &t->gpu.described.items[i]);
	return s.err;
}
