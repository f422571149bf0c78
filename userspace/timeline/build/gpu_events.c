/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Finds the record of a CUDA event that a synchronisation waits for: the one that CUPTI names, else
 * the last record of this event that was requested before. An event may be recorded again and
 * again; the ids of calls give the order.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/banned.h"
#include "timeline/model/build.h"

static int compare_u64(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static uint64_t event_key(uint32_t process, uint32_t event)
{
	return (uint64_t)process << 32 | event;
}

static int compare(const void *a, const void *b)
{
	const struct raw_cuda_event *x = a, *y = b;
	int order = compare_u64(event_key(x->process, x->event), event_key(y->process, y->event));

	if (!order)
		order = compare_u64(x->context, y->context);
	return order ? order : compare_u64(x->correlation_id, y->correlation_id);
}

/* The last record of the same event whose call came before this one's. NULL: none. */
static const struct raw_cuda_event *last_before(const struct build *b, const struct tl_gpu *g)
{
	const struct raw_cuda_event wanted = {
		.process = g->process,
		.context = g->context,
		.event = g->sync.event,
		.correlation_id = g->correlation_id,
	};
	const struct raw_cuda_event *found;
	size_t low = 0, high = b->gpu.events.nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare(&b->gpu.events.items[middle], &wanted) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return NULL;
	found = &b->gpu.events.items[low - 1];
	return found->process == g->process && found->context == g->context &&
			       found->event == g->sync.event
		       ? found
		       : NULL;
}

static uint64_t record_key(uint32_t process, uint64_t record_id)
{
	return hash_mix(record_id) ^ process;
}

static void wait_for(const struct build *b, const struct hash *records, struct tl_gpu *g)
{
	const uint64_t *known =
		g->sync.record_id ? hash__find(records, record_key(g->process, g->sync.record_id))
				  : NULL;
	const struct raw_cuda_event *e = known ? &b->gpu.events.items[*known] : last_before(b, g);

	if (!e)
		return;
	g->sync.record_correlation_id = e->correlation_id;
	g->sync.record_stream = e->stream;
}

static int keep_timed(struct build *b, const struct raw_cuda_event *raw)
{
	struct tl_cuda_event e = {
		.time_ns = raw->time_ns,
		.process = raw->process,
		.device = raw->device,
		.context = raw->context,
		.stream = raw->stream,
		.event = raw->event,
		.correlation_id = raw->correlation_id,
	};
	uint32_t api = build_gpu_call(b, raw->process, raw->correlation_id, raw->time_ns);

	e.op = api == TL_NONE ? TL_NONE : b->t->gpu.api.items[api].op;
	return vec_push(&b->t->gpu.events, e);
}

static int compare_time(const void *a, const void *b)
{
	const struct tl_cuda_event *x = a, *y = b;

	return compare_u64(x->time_ns, y->time_ns);
}

int build_gpu_events(struct build *b)
{
	struct tl_gpus *gpu = &b->t->gpu;
	struct hash records = {0};
	int err = 0;

	if (b->gpu.events.nr)
		qsort(b->gpu.events.items, b->gpu.events.nr, sizeof(*b->gpu.events.items), compare);
	for (size_t i = 0; i < b->gpu.events.nr && !err; i++) {
		const struct raw_cuda_event *e = &b->gpu.events.items[i];

		if (e->record_id)
			err = hash__set(&records, record_key(e->process, e->record_id), i);
		if (!err && e->time_ns && e->device != TL_NONE)
			err = keep_timed(b, e);
	}
	if (gpu->events.nr)
		qsort(gpu->events.items, gpu->events.nr, sizeof(*gpu->events.items), compare_time);
	for (size_t i = 0; i < gpu->work.nr && !err; i++) {
		struct tl_gpu *g = &gpu->work.items[i];

		if (tl_gpu_waits_for_event(g))
			wait_for(b, &records, g);
	}
	hash__done(&records);
	return err;
}
