/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The GPU in a Chrome trace: API calls on their threads, work on rows of its own (pid: the device,
 * tid: the stream), and an arrow from each call to its work.
 */
#include "output/chrome/chrome.h"
#include "timeline/analysis/occupancy.h"

#include <errno.h>
#include <inttypes.h>

#include "base/banned.h"

#define EVENT_NS 1 /* how long a CUDA event is in Kineto's traces */

static void where(struct chrome *c, const struct tl_gpu *g, uint64_t time_ns)
{
	chrome_where_row(c, (int64_t)chrome_gpu_pid(c, g->process, g->device), chrome_gpu_tid(g),
			 time_ns);
}

/* Begins the arguments; the op's number is the id that Kineto calls external. */
static void begin_args(struct chrome *c, uint32_t op)
{
	chrome_begin_args(c);
	if (op != TL_NONE)
		json__put_u64(&c->json, "External id", (uint64_t)op + 1);
}

static void arrow_name(struct chrome *c)
{
	json__put_word(&c->json, "cat", "ac2g");
	json__put_word(&c->json, "name", "ac2g");
}

static void three(struct chrome *c, const char *name, const uint32_t n[3])
{
	json__put_array(&c->json, name, &json_tight);
	for (int i = 0; i < 3; i++)
		json__u64(&c->json, n[i]);
	json__end(&c->json);
}

/* ---- API calls ---- */

/* What a kernel's or copy's own record would show, where CUPTI gave none. */
static void call_args(struct chrome *c, const struct tl_api_args *a)
{
	if (a->kernel)
		json__put_text(&c->json, "kernel", a->kernel);
	if (a->block[0]) {
		json__put_u64(&c->json, "shared memory", a->shared_bytes);
		three(c, "grid", a->grid);
		three(c, "block", a->block);
	}
	if (a->stream) {
		json__key(&c->json, "stream handle");
		json__printf(&c->json, "0x%" PRIx64, a->stream);
	}
	if (a->bytes)
		json__put_u64(&c->json, "bytes", a->bytes);
}

static const char *api_category(const struct tl_api *api)
{
	if (api->collective != TL_NONE)
		return "nccl";
	return api->flags & GP_API_DRIVER ? "cuda_driver" : "cuda_runtime";
}

static void api_args(struct chrome *c, const struct tl_api *api, uint32_t process)
{
	const struct tl_api_args *args = NULL;

	if (api->args != TL_NONE && !api->gpu_nr)
		args = &c->t->gpu.args.items[api->args];
	begin_args(c, api->op);
	if (api->correlation_id) {
		json__put_u64(&c->json, "cbid", api->cbid);
		json__put_u64(&c->json, "correlation", tl_call_id(process, api->correlation_id));
	} else if (args || api->collective != TL_NONE) {
		json__put_word(&c->json, "seen by", "uprobe");
	}
	if (api->collective != TL_NONE)
		chrome_collective(c, api);
	if (args)
		call_args(c, args);
	chrome_end_args(c);
}

static void api_slice(struct chrome *c, const struct tl_api *api)
{
	uint32_t process = c->t->threads.items[api->thread].process;

	chrome_begin_event(c, "X", api_category(api), api->name);
	chrome_where(c, api->thread, api->start_ns);
	chrome_duration(c, api->start_ns, api->end_ns);
	api_args(c, api, process);
	if (!api->gpu_nr)
		return;
	chrome_begin_arrow(c, "s", tl_call_id(process, api->correlation_id));
	chrome_where(c, api->thread, api->start_ns);
	arrow_name(c);
	json__end(&c->json);
}

/* ---- work ---- */

static void place_args(struct chrome *c, const struct tl_gpu *g)
{
	json__put_u64(&c->json, "device", g->device);
	json__put_u64(&c->json, "context", g->context);
	json__put_u64(&c->json, "stream", g->stream);
	json__put_u64(&c->json, "correlation", tl_call_id(g->process, g->correlation_id));
}

static void graph_args(struct chrome *c, const struct tl_gpu *g)
{
	if (!g->graph && !g->graph_node)
		return;
	json__put_u64(&c->json, "graph id", g->graph);
	json__put_u64(&c->json, "graph node id", g->graph_node);
}

static void kernel_args(struct chrome *c, const struct tl_gpu *g)
{
	const struct tl_device *device = tl_gpus__device(&c->t->gpu, g->process, g->device);
	struct occupancy o;
	bool known = device && occupancy_of(device, g, &o);

	json__put_u64(&c->json, "queued", g->kernel.queued_ns);
	place_args(c, g);
	json__put_u64(&c->json, "registers per thread", g->kernel.registers);
	json__put_i64(&c->json, "shared memory", g->kernel.shared_bytes);
	if (known) {
		json__put_fixed(&c->json, "blocks per SM", o.blocks_per_sm, 6);
		json__put_fixed(&c->json, "warps per SM", o.warps_per_sm, 6);
	}
	three(c, "grid", g->kernel.grid);
	three(c, "block", g->kernel.block);
	if (known)
		json__put_u64(&c->json, "est. achieved occupancy %", o.percent);
	chrome_collective_kernel(c, g);
	graph_args(c, g);
}

static void memory_args(struct chrome *c, const struct tl_gpu *g)
{
	uint64_t ns = g->end_ns - g->start_ns;

	if (g->memory.peer_device != TL_NONE && g->kind == TL_GPU_COPY) {
		json__put_u64(&c->json, "fromDevice", g->device);
		json__put_u64(&c->json, "inDevice", g->device);
		json__put_u64(&c->json, "toDevice", g->memory.peer_device);
	}
	place_args(c, g);
	json__put_u64(&c->json, "bytes", g->memory.bytes);
	if (ns) {
		json__key(&c->json, "memory bandwidth (GB/s)");
		json__shortest(&c->json, (double)g->memory.bytes / (double)ns);
	}
	graph_args(c, g);
}

static void sync_args(struct chrome *c, const struct tl_gpu *g)
{
	json__put_text(&c->json, "cuda_sync_kind", g->name);
	if (tl_gpu_waits_for_event(g)) {
		json__put_i64(&c->json, "wait_on_stream", chrome_gpu_stream(g->sync.record_stream));
		json__put_i64(
			&c->json, "wait_on_cuda_event_record_corr_id",
			g->sync.record_correlation_id
				? (int64_t)tl_call_id(g->process, g->sync.record_correlation_id)
				: -1);
		json__put_u64(&c->json, "wait_on_cuda_event_id", g->sync.event);
	}
	json__put_i64(&c->json, "stream", chrome_gpu_stream(g->stream));
	json__put_u64(&c->json, "correlation", tl_call_id(g->process, g->correlation_id));
	json__put_u64(&c->json, "device", g->device);
	json__put_u64(&c->json, "context", g->context);
}

static void work_args(struct chrome *c, const struct tl_gpu *g)
{
	begin_args(c, g->op);
	if (g->kind == TL_GPU_KERNEL)
		kernel_args(c, g);
	else if (g->kind == TL_GPU_SYNC)
		sync_args(c, g);
	else
		memory_args(c, g);
	chrome_end_args(c);
}

static void work_slice(struct chrome *c, const struct tl_gpu *g)
{
	static const char *const categories[] = {
		[TL_GPU_KERNEL] = "kernel",
		[TL_GPU_COPY] = "gpu_memcpy",
		[TL_GPU_SET] = "gpu_memset",
		[TL_GPU_SYNC] = "cuda_sync",
	};

	chrome_begin_event(c, "X", categories[g->kind], g->name);
	where(c, g, g->shown_start_ns);
	chrome_duration(c, g->shown_start_ns, g->shown_end_ns);
	work_args(c, g);
	if (g->api == TL_NONE)
		return;
	chrome_begin_arrow(c, "f", tl_call_id(g->process, g->correlation_id));
	where(c, g, g->shown_start_ns);
	arrow_name(c);
	json__put_word(&c->json, "bp", "e");
	json__end(&c->json);
}

/* On the row of its stream, at the time when the GPU reached it. */
static void event_slice(struct chrome *c, const struct tl_cuda_event *e)
{
	chrome_begin_event(c, "X", "cuda_event", "cudaEvent");
	chrome_where_row(c, (int64_t)chrome_gpu_pid(c, e->process, e->device), e->stream,
			 e->time_ns);
	json__put_us(&c->json, "dur", EVENT_NS);
	begin_args(c, e->op);
	json__put_u64(&c->json, "event_id", e->event);
	json__put_u64(&c->json, "stream", e->stream);
	json__put_u64(&c->json, "correlation", tl_call_id(e->process, e->correlation_id));
	json__put_u64(&c->json, "device", e->device);
	json__put_u64(&c->json, "context", e->context);
	chrome_end_args(c);
}

/* On a row of no process, by thread. */
static void overhead_slice(struct chrome *c, const struct tl_overhead *o)
{
	chrome_begin_event(c, "X", "overhead", o->name);
	chrome_where_row(c, CHROME_OVERHEAD_PID, o->tid, o->start_ns);
	chrome_duration(c, o->start_ns, o->end_ns);
	json__end(&c->json);
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
