/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The GPU in a Chrome trace: API calls on their threads, work on rows of its own (pid: the device,
 * tid: the stream), and an arrow from each call to its work. The work of lane n of a stream is on
 * tid stream + n * 1000000.
 */
#include "output/chrome/chrome.h"
#include "timeline/analysis/occupancy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/banned.h"

#define LANE_TIDS 1000000
#define EVENT_NS  1 /* how long a CUDA event is in Kineto's traces */

/* -1: it has none, or is not known. */
static int64_t known_stream(uint32_t stream)
{
	return stream == TL_NONE ? -1 : (int64_t)stream;
}

int64_t chrome_gpu_tid(const struct tl_gpu *g)
{
	return known_stream(g->stream) + (int64_t)g->lane * LANE_TIDS;
}

static void where(struct chrome *c, const struct tl_gpu *g, uint64_t time_ns)
{
	chrome_lit(&c->out, ",\"pid\":");
	buf__u64(&c->out, chrome_gpu_pid(c, g->process, g->device));
	chrome_lit(&c->out, ",\"tid\":");
	buf__i64(&c->out, chrome_gpu_tid(g));
	chrome_lit(&c->out, ",\"ts\":");
	buf__us(&c->out, chrome_time(c, time_ns));
}

static void arg_u64(struct chrome *c, const char *name, uint64_t value)
{
	chrome_lit(&c->out, ",\"");
	buf__str(&c->out, name);
	chrome_lit(&c->out, "\":");
	buf__u64(&c->out, value);
}

/* -1: it is not known. */
static void arg_known(struct chrome *c, const char *name, int64_t value)
{
	chrome_lit(&c->out, ",\"");
	buf__str(&c->out, name);
	chrome_lit(&c->out, "\":");
	buf__i64(&c->out, value);
}

/* Begins the arguments, of which more follow or not; the op's number is the id that Kineto calls
 * external. */
static void external_id(struct chrome *c, uint32_t op, bool more)
{
	chrome_lit(&c->out, ",\"args\":{");
	if (op == TL_NONE)
		return;
	chrome_lit(&c->out, "\"External id\":");
	buf__u64(&c->out, (uint64_t)op + 1);
	if (more)
		chrome_lit(&c->out, ",");
}

static void arrow(struct chrome *c, bool begins, uint32_t process, uint32_t correlation_id)
{
	chrome_begin(c);
	if (begins)
		chrome_lit(&c->out, "{\"ph\":\"s\",\"id\":");
	else
		chrome_lit(&c->out, "{\"ph\":\"f\",\"id\":");
	buf__u64(&c->out, tl_call_id(process, correlation_id));
}

static void arrow_name(struct chrome *c)
{
	chrome_lit(&c->out, ",\"cat\":\"ac2g\",\"name\":\"ac2g\"");
}

static void three(struct chrome *c, const char *name, const uint32_t n[3])
{
	chrome_lit(&c->out, ",\"");
	buf__str(&c->out, name);
	chrome_lit(&c->out, "\":[");
	for (int i = 0; i < 3; i++) {
		if (i)
			chrome_lit(&c->out, ",");
		buf__u64(&c->out, n[i]);
	}
	chrome_lit(&c->out, "]");
}

/* ---- API calls ---- */

/* What the kernel and copy would say, where CUPTI does not tell them. */
static void call_args(struct chrome *c, const struct tl_api_args *a)
{
	if (a->kernel) {
		chrome_lit(&c->out, ",\"kernel\":");
		buf__json(&c->out, a->kernel);
	}
	if (a->block[0]) {
		arg_u64(c, "shared memory", a->shared_bytes);
		three(c, "grid", a->grid);
		three(c, "block", a->block);
	}
	if (a->stream)
		buf__printf(&c->out, ",\"stream handle\":\"0x%" PRIx64 "\"", a->stream);
	if (a->bytes)
		arg_u64(c, "bytes", a->bytes);
}

static void api_slice(struct chrome *c, const struct tl_api *api)
{
	uint32_t process = c->t->threads.items[api->thread].process;
	const struct tl_api_args *args = NULL;

	if (api->args != TL_NONE && !api->gpu_nr)
		args = &c->t->gpu.args.items[api->args];
	chrome_begin(c);
	if (api->collective != TL_NONE)
		chrome_lit(&c->out, "{\"ph\":\"X\",\"cat\":\"nccl\",\"name\":");
	else if (api->flags & GP_API_DRIVER)
		chrome_lit(&c->out, "{\"ph\":\"X\",\"cat\":\"cuda_driver\",\"name\":");
	else
		chrome_lit(&c->out, "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":");
	buf__json(&c->out, api->name);
	chrome_where(c, api->thread, api->start_ns);
	chrome_lit(&c->out, ",\"dur\":");
	buf__us(&c->out, chrome_time(c, api->end_ns) - chrome_time(c, api->start_ns));
	external_id(c, api->op, api->correlation_id != 0 || args || api->collective != TL_NONE);
	if (api->correlation_id) {
		chrome_lit(&c->out, "\"cbid\":");
		buf__u64(&c->out, api->cbid);
		arg_u64(c, "correlation", tl_call_id(process, api->correlation_id));
	} else if (args || api->collective != TL_NONE) {
		chrome_lit(&c->out, "\"seen by\":\"uprobe\"");
	}
	if (api->collective != TL_NONE)
		chrome_collective(c, api);
	if (args)
		call_args(c, args);
	chrome_lit(&c->out, "}}");
	if (!api->gpu_nr)
		return;
	arrow(c, true, process, api->correlation_id);
	chrome_where(c, api->thread, api->start_ns);
	arrow_name(c);
	chrome_lit(&c->out, "}");
}

/* ---- work ---- */

static void place_args(struct chrome *c, const struct tl_gpu *g)
{
	chrome_lit(&c->out, "\"device\":");
	buf__u64(&c->out, g->device);
	arg_u64(c, "context", g->context);
	arg_u64(c, "stream", g->stream);
	arg_u64(c, "correlation", tl_call_id(g->process, g->correlation_id));
}

static void graph_args(struct chrome *c, const struct tl_gpu *g)
{
	if (!g->graph && !g->graph_node)
		return;
	arg_u64(c, "graph id", g->graph);
	arg_u64(c, "graph node id", g->graph_node);
}

static void kernel_args(struct chrome *c, const struct tl_gpu *g)
{
	const struct tl_device *device = tl_gpus__device(&c->t->gpu, g->process, g->device);
	struct occupancy o;
	bool known = device && occupancy_of(device, g, &o);

	chrome_lit(&c->out, "\"queued\":");
	buf__u64(&c->out, g->kernel.queued_ns);
	chrome_lit(&c->out, ",");
	place_args(c, g);
	arg_u64(c, "registers per thread", g->kernel.registers);
	chrome_lit(&c->out, ",\"shared memory\":");
	buf__i64(&c->out, g->kernel.shared_bytes);
	if (known)
		buf__printf(&c->out, ",\"blocks per SM\":%.6f,\"warps per SM\":%.6f",
			    o.blocks_per_sm, o.warps_per_sm);
	three(c, "grid", g->kernel.grid);
	three(c, "block", g->kernel.block);
	if (known)
		arg_u64(c, "est. achieved occupancy %", o.percent);
	chrome_collective_kernel(c, g);
	graph_args(c, g);
}

/* The shortest text that reads back as the same number; never an exponent that JSON lacks. */
static void shortest(struct buf *out, double value)
{
	char text[40];

	for (int digits = 6; digits <= 17; digits++) {
		(void)snprintf(text, sizeof(text), "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	buf__str(out, text);
}

static void memory_args(struct chrome *c, const struct tl_gpu *g)
{
	uint64_t ns = g->end_ns - g->start_ns;

	if (g->memory.peer_device != TL_NONE && g->kind == TL_GPU_COPY) {
		chrome_lit(&c->out, "\"fromDevice\":");
		buf__u64(&c->out, g->device);
		arg_u64(c, "inDevice", g->device);
		arg_u64(c, "toDevice", g->memory.peer_device);
		chrome_lit(&c->out, ",");
	}
	place_args(c, g);
	arg_u64(c, "bytes", g->memory.bytes);
	if (ns) {
		chrome_lit(&c->out, ",\"memory bandwidth (GB/s)\":");
		shortest(&c->out, (double)g->memory.bytes / (double)ns);
	}
	graph_args(c, g);
}

static void sync_args(struct chrome *c, const struct tl_gpu *g)
{
	chrome_lit(&c->out, "\"cuda_sync_kind\":");
	buf__json(&c->out, g->name);
	if (tl_gpu_waits_for_event(g)) {
		arg_known(c, "wait_on_stream", known_stream(g->sync.record_stream));
		arg_known(c, "wait_on_cuda_event_record_corr_id",
			  g->sync.record_correlation_id
				  ? (int64_t)tl_call_id(g->process, g->sync.record_correlation_id)
				  : -1);
		arg_u64(c, "wait_on_cuda_event_id", g->sync.event);
	}
	arg_known(c, "stream", known_stream(g->stream));
	arg_u64(c, "correlation", tl_call_id(g->process, g->correlation_id));
	arg_u64(c, "device", g->device);
	arg_u64(c, "context", g->context);
}

static void work_args(struct chrome *c, const struct tl_gpu *g)
{
	external_id(c, g->op, true);
	if (g->kind == TL_GPU_KERNEL)
		kernel_args(c, g);
	else if (g->kind == TL_GPU_SYNC)
		sync_args(c, g);
	else
		memory_args(c, g);
	chrome_lit(&c->out, "}}");
}

static void work_slice(struct chrome *c, const struct tl_gpu *g)
{
	static const char *const categories[] = {
		[TL_GPU_KERNEL] = "kernel",
		[TL_GPU_COPY] = "gpu_memcpy",
		[TL_GPU_SET] = "gpu_memset",
		[TL_GPU_SYNC] = "cuda_sync",
	};

	chrome_begin(c);
	chrome_lit(&c->out, "{\"ph\":\"X\",\"cat\":\"");
	buf__str(&c->out, categories[g->kind]);
	chrome_lit(&c->out, "\",\"name\":");
	buf__json(&c->out, g->name);
	where(c, g, g->shown_start_ns);
	chrome_lit(&c->out, ",\"dur\":");
	buf__us(&c->out, chrome_time(c, g->shown_end_ns) - chrome_time(c, g->shown_start_ns));
	work_args(c, g);
	if (g->api == TL_NONE)
		return;
	arrow(c, false, g->process, g->correlation_id);
	where(c, g, g->shown_start_ns);
	arrow_name(c);
	chrome_lit(&c->out, ",\"bp\":\"e\"}");
}

/* On the row of its stream, where the GPU came to it. */
static void event_slice(struct chrome *c, const struct tl_cuda_event *e)
{
	chrome_begin(c);
	chrome_lit(&c->out, "{\"ph\":\"X\",\"cat\":\"cuda_event\",\"name\":\"cudaEvent\"");
	buf__printf(&c->out, ",\"pid\":%" PRIu64 ",\"tid\":%" PRIu32 ",\"ts\":",
		    chrome_gpu_pid(c, e->process, e->device), e->stream);
	buf__us(&c->out, chrome_time(c, e->time_ns));
	chrome_lit(&c->out, ",\"dur\":");
	buf__us(&c->out, EVENT_NS);
	external_id(c, e->op, true);
	chrome_lit(&c->out, "\"event_id\":");
	buf__u64(&c->out, e->event);
	arg_u64(c, "stream", e->stream);
	arg_u64(c, "correlation", tl_call_id(e->process, e->correlation_id));
	arg_u64(c, "device", e->device);
	arg_u64(c, "context", e->context);
	chrome_lit(&c->out, "}}");
}

/* On a row of no process, by thread. */
static void overhead_slice(struct chrome *c, const struct tl_overhead *o)
{
	chrome_begin(c);
	chrome_lit(&c->out, "{\"ph\":\"X\",\"cat\":\"overhead\",\"name\":");
	buf__json(&c->out, o->name);
	buf__printf(&c->out, ",\"pid\":%d,\"tid\":%" PRIu32 ",\"ts\":", CHROME_OVERHEAD_PID,
		    o->tid);
	buf__us(&c->out, chrome_time(c, o->start_ns));
	chrome_lit(&c->out, ",\"dur\":");
	buf__us(&c->out, chrome_time(c, o->end_ns) - chrome_time(c, o->start_ns));
	chrome_lit(&c->out, "}");
}

int chrome_gpu(struct chrome *c)
{
	const struct tl_gpus *gpu = &c->t->gpu;
	int err = 0;

	for (size_t i = 0; i < gpu->api.nr && !err; i++) {
		/* Overhead is drawn on rows of its own, as Kineto does. */
		if ((gpu->api.items[i].flags & GP_API_OVERHEAD) ||
		    !chrome_shows_thread(c, gpu->api.items[i].thread))
			continue;
		api_slice(c, &gpu->api.items[i]);
		err = chrome_drain(c, false);
	}
	for (size_t i = 0; i < gpu->work.nr && !err; i++) {
		if (gpu->work.items[i].lane == TL_NONE ||
		    !chrome_shows(c, gpu->work.items[i].process))
			continue;
		work_slice(c, &gpu->work.items[i]);
		err = chrome_drain(c, false);
	}
	for (size_t i = 0; i < gpu->events.nr && !err; i++) {
		if (!chrome_shows(c, gpu->events.items[i].process))
			continue;
		event_slice(c, &gpu->events.items[i]);
		err = chrome_drain(c, false);
	}
	for (size_t i = 0; i < gpu->overhead.nr && !err; i++) {
		if (!chrome_shows(c, gpu->overhead.items[i].process))
			continue;
		overhead_slice(c, &gpu->overhead.items[i]);
		err = chrome_drain(c, false);
	}
	return err ? err : chrome_annotations(c);
}
