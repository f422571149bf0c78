/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Reads events about GPUs into columns. Drops and counts what cannot be true; gives names the form
 * that torch.profiler prints.
 */
#include "timeline/read/context.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/banned.h"
#include "base/demangle.h"
#include "common/api_name.h"

/* A clock that drifts by more than 1 ns in this many was set. */
#define CLOCK_DRIFT_PART 1000

#define DEVICES_MAX 4096

/* Returned by a reader: the event is of another kind. */
#define NOT_OF_GPUS 1

/* Longer names of kernels stay mangled (kMaxSymbolSize of Kineto's Demangle.cpp): demangled, some
 * of CUTLASS have ten thousand bytes. */
#define KERNEL_BYTES 1024

/* Which name of an id the cache holds. */
enum name_kind { NAME_KERNEL = 1, NAME_CALL = 2, NAME_CALL_BASE = 3 };

/* CUpti_ActivityMemcpyKind, CUpti_ActivityMemoryKind. */
static const char *const copy_kinds[] = {"<unknown>", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA",
					 "AtoD",      "DtoA", "DtoD", "HtoH", "PtoP"};
static const char *const memory_kinds[] = {"Unknown",	    "Pageable",	     "Pinned",
					   "Device",	    "Array",	     "Managed",
					   "Device Static", "Managed Static"};
/* CUpti_ActivitySynchronizationType. */
static const char *const sync_kinds[] = {"Unknown Sync", "Event Sync", "Stream Wait Event",
					 "Stream Sync", "Context Sync"};

/* By the upper half of CUpti_ActivityOverheadKind; small values are the driver's compiler. */
static const char *const overhead_kinds[] = {"Driver Compiler",
					     "Buffer Flush",
					     "Instrumentation",
					     "Resource",
					     "Runtime Triggered Module Loading",
					     "Lazy Function Loading",
					     "Command Buffer Full",
					     "Activity Buffer Request",
					     "UVM Activity Init"};

#define NAME_OF(names, i) ((i) < sizeof(names) / sizeof(*(names)) ? (names)[i] : (names)[0])

/* ---- names ---- */

/* Bytes of a name without the suffix of variants for a default stream per thread. */
static size_t without_variant(const char *name, size_t bytes)
{
	if (bytes > 5 &&
	    (!strncmp(name + bytes - 5, "_ptsz", 5) || !strncmp(name + bytes - 5, "_ptds", 5)))
		return bytes - 5;
	return bytes;
}

static const char *make_name(struct build *b, const char *name, enum name_kind kind)
{
	struct buf text = {0};
	const char *kept;
	size_t bytes = strlen(name);

	if (kind == NAME_KERNEL) {
		kept = build_intern(b, bytes <= KERNEL_BYTES && demangle(&text, name) ? text.bytes
										      : name);
		if (buf__error(&text))
			b->err = -ENOMEM;
		buf__done(&text);
		return kept;
	}
	bytes = api_name_without_version(name, bytes);
	if (kind == NAME_CALL_BASE)
		bytes = without_variant(name, bytes);
	kept = intern__get(b->t->private->intern, name, bytes);
	if (!kept)
		b->err = -ENOMEM;
	return kept;
}

/* NULL with b->err set. */
static const char *name_of(struct build *b, uint32_t id, enum name_kind kind)
{
	uint64_t key = (uint64_t)kind << 32 | id;
	const uint64_t *known = hash__find(&b->gpu.name_of, key);
	const char *name, *overload;

	if (known)
		return (const char *)(uintptr_t)*known;
	name = make_name(b, recording__name(b->t->recording, id, &overload), kind);
	if (!b->err && hash__set(&b->gpu.name_of, key, (uintptr_t)name))
		b->err = -ENOMEM;
	return b->err ? NULL : name;
}

static const char *copy_name(struct build *b, const struct gp_ev_gpu_memory *e)
{
	char name[80];

	if (e->is_set)
		(void)snprintf(name, sizeof(name), "Memset (%s)",
			       NAME_OF(memory_kinds, e->src_kind));
	else
		(void)snprintf(name, sizeof(name), "Memcpy %s (%s -> %s)",
			       NAME_OF(copy_kinds, e->copy_kind),
			       NAME_OF(memory_kinds, e->src_kind),
			       NAME_OF(memory_kinds, e->dst_kind));
	return build_intern(b, name);
}

/* ---- events ---- */

static bool time_possible(uint64_t start_ns, uint64_t end_ns)
{
	return start_ns && start_ns <= end_ns && end_ns < TL_TIME_END_NS;
}

/* Reads the arguments of a call seen by uprobe. TL_NONE with b->err set. */
static uint32_t read_args(struct build *b, const struct gp_ev_api_call *e)
{
	const struct gp_ev_api *api = &e->api;
	struct tl_api_args args = {
		.kernel = e->kernel_name_id ? name_of(b, e->kernel_name_id, NAME_KERNEL) : NULL,
		.stream = api->stream,
		.bytes = api->bytes,
		.shared_bytes = api->shared_bytes,
	};

	memcpy(args.grid, api->grid, sizeof(args.grid));
	memcpy(args.block, api->block, sizeof(args.block));
	if (!b->err && vec_push(&b->t->gpu.args, args))
		b->err = -ENOMEM;
	return b->err ? TL_NONE : (uint32_t)b->t->gpu.args.nr - 1;
}

/* Adds a call, complete but for its names and thread. */
static int add_api(struct build *b, const struct gp_ev_head *head, uint32_t name_id,
		   struct raw_api *raw)
{
	if (b->err)
		return b->err;
	if (!time_possible(raw->api.start_ns, raw->api.end_ns)) {
		b->counts[TL_API_TIME_INVALID]++;
		return 0;
	}
	if (!build_in_window(b, raw->api.start_ns, raw->api.end_ns))
		return 0;
	if (b->gpu.apis.nr >= TL_NONE - 1)
		return -EFBIG;
	raw->api.thread = build_thread_of(b, head);
	raw->api.name = name_of(b, name_id, NAME_CALL);
	raw->base = name_of(b, name_id, NAME_CALL_BASE);
	if (b->err)
		return b->err;
	build_extend_time(b, raw->api.start_ns, raw->api.end_ns);
	return vec_push(&b->gpu.apis, *raw);
}

static int read_api(struct build *b, const struct gp_ev_api *e, size_t bytes)
{
	bool has_end = e->head.time_ns || (e->head.flags & GP_API_CUPTI);
	struct raw_api raw = {
		.api = {.start_ns = e->start_ns,
			.end_ns = has_end ? e->head.time_ns : e->start_ns,
			.op = TL_NONE,
			.parent = TL_NONE,
			.args = TL_NONE,
			.collective = TL_NONE,
			.cbid = e->cbid,
			.correlation_id = e->correlation_id,
			.stack_id = e->stack_id,
			.flags = e->head.flags & ~(uint32_t)(GP_API_NCCL | GP_API_OVERHEAD)},
		.instance = e->instance,
		.has_end = has_end,
	};

	if (!b->err && bytes >= sizeof(struct gp_ev_api_call))
		raw.api.args = read_args(b, (const struct gp_ev_api_call *)e);
	return add_api(b, &e->head, e->name_id, &raw);
}

/* The number of ranks is known if the communicator was made within the capture. */
static int read_collective(struct build *b, const struct gp_ev_collective *e)
{
	uint64_t key = hash_mix(e->head.process + 1ULL) ^ e->communicator;
	const uint64_t *known = hash__find(&b->gpu.ranks_of, key);
	struct tl_collective c = {
		.count = e->count,
		.communicator = e->communicator,
		.stream = e->stream,
		.datatype = e->datatype,
		.op = e->op,
		.peer = e->peer,
		.ranks = e->ranks > 0 ? e->ranks
			 : known      ? (int32_t)*known
				      : 0,
	};
	struct raw_api raw = {
		.api = {.start_ns = e->start_ns,
			.end_ns = e->head.time_ns ? e->head.time_ns : e->start_ns,
			.op = TL_NONE,
			.parent = TL_NONE,
			.args = TL_NONE,
			.collective = (uint32_t)b->t->gpu.collectives.nr,
			.flags = GP_API_NCCL},
		.instance = e->instance,
		.has_end = e->head.time_ns,
	};

	if (b->t->gpu.collectives.nr >= TL_NONE - 1)
		return -EFBIG;
	if (e->ranks > 0 && e->communicator && hash__set(&b->gpu.ranks_of, key, (uint64_t)e->ranks))
		return -ENOMEM;
	if (vec_push(&b->t->gpu.collectives, c))
		return -ENOMEM;
	return add_api(b, &e->head, e->name_id, &raw);
}

/* Adds work. Its end, joins and process are still to be set. */
static int add_work(struct build *b, const struct gp_ev_head *head, struct tl_gpu *g)
{
	g->end_ns = head->time_ns;
	g->api = g->op = g->lane = TL_NONE;
	if (!time_possible(g->start_ns, g->end_ns)) {
		b->counts[TL_GPU_TIME_INVALID]++;
		return 0;
	}
	/* It may run on after the step that it was launched in. */
	if (!build_in_window(b, g->start_ns, g->start_ns))
		return 0;
	if (b->t->gpu.work.nr >= TL_NONE - 1)
		return -EFBIG;
	g->process = build_process_of(b, head);
	if (b->err)
		return b->err;
	build_extend_time(b, g->start_ns, g->end_ns);
	return vec_push(&b->t->gpu.work, *g);
}

static int read_kernel(struct build *b, const struct gp_ev_kernel *e)
{
	struct tl_gpu g = {
		.kind = TL_GPU_KERNEL,
		.start_ns = e->start_ns,
		.name = name_of(b, e->name_id, NAME_KERNEL),
		.device = e->device,
		.context = e->context,
		.stream = e->stream,
		.correlation_id = e->correlation_id,
		.graph = e->graph,
		.graph_node = e->graph_node,
	};

	g.kernel.queued_ns = e->queued_ns;
	g.kernel.registers = e->registers;
	g.kernel.shared_bytes = (int64_t)e->static_shared_bytes + e->dynamic_shared_bytes;
	memcpy(g.kernel.grid, e->grid, sizeof(g.kernel.grid));
	memcpy(g.kernel.block, e->block, sizeof(g.kernel.block));
	return b->err ? b->err : add_work(b, &e->head, &g);
}

static int read_gpu_memory(struct build *b, const struct gp_ev_gpu_memory *e)
{
	struct tl_gpu g = {
		.kind = e->is_set ? TL_GPU_SET : TL_GPU_COPY,
		.start_ns = e->start_ns,
		.name = copy_name(b, e),
		.device = e->device,
		.context = e->context,
		.stream = e->stream,
		.correlation_id = e->correlation_id,
		.graph = e->graph,
		.graph_node = e->graph_node,
	};

	g.memory.bytes = e->bytes;
	g.memory.peer_device = e->is_set ? TL_NONE : e->peer_device;
	return b->err ? b->err : add_work(b, &e->head, &g);
}

static int read_sync(struct build *b, const struct gp_ev_sync *e, size_t bytes)
{
	struct tl_gpu g = {
		.kind = TL_GPU_SYNC,
		.start_ns = e->start_ns,
		.name = build_intern(b, NAME_OF(sync_kinds, e->what)),
		.device = TL_NONE,
		.context = e->context,
		.stream = e->stream,
		.correlation_id = e->correlation_id,
	};

	g.sync.what = e->what;
	g.sync.event = e->event;
	g.sync.record_stream = TL_NONE;
	if (bytes >= sizeof(struct gp_ev_sync_event))
		g.sync.record_id = ((const struct gp_ev_sync_event *)e)->record_id;
	return b->err ? b->err : add_work(b, &e->head, &g);
}

static int read_cuda_event(struct build *b, const struct gp_ev_cuda_event *e)
{
	struct raw_cuda_event raw = {
		.record_id = e->record_id,
		.time_ns = e->head.flags & GP_CUDA_EVENT_TIMED ? e->head.time_ns : 0,
		.process = build_process_of(b, &e->head),
		.context = e->context,
		.event = e->event,
		.correlation_id = e->correlation_id,
		.stream = e->stream,
		.device = e->device,
	};

	if (b->err)
		return b->err;
	if (raw.time_ns >= TL_TIME_END_NS) {
		b->counts[TL_GPU_TIME_INVALID]++;
		return 0;
	}
	if (raw.time_ns && !build_in_window(b, raw.time_ns, raw.time_ns))
		raw.time_ns = 0;
	if (raw.time_ns)
		build_extend_time(b, raw.time_ns, raw.time_ns);
	return vec_push(&b->gpu.events, raw);
}

/* Makes the overhead a call of its own within the call or operator that it interrupted, whose time
 * it would otherwise be. */
static int add_overhead_call(struct build *b, const struct gp_ev_head *head,
			     const struct tl_overhead *o)
{
	struct raw_api raw = {
		.api = {.start_ns = o->start_ns,
			.end_ns = o->end_ns,
			.name = o->name,
			.op = TL_NONE,
			.parent = TL_NONE,
			.args = TL_NONE,
			.collective = TL_NONE,
			.flags = GP_API_CUPTI | GP_API_OVERHEAD},
		.base = o->name,
		.has_end = true,
	};

	if (!o->tid || !build_in_window(b, o->start_ns, o->end_ns))
		return 0;
	if (b->gpu.apis.nr >= TL_NONE - 1)
		return -EFBIG;
	raw.api.thread = build_thread_of(b, head);
	return b->err ? b->err : vec_push(&b->gpu.apis, raw);
}

static int read_overhead(struct build *b, const struct gp_ev_overhead *e)
{
	struct tl_overhead o = {
		.start_ns = e->start_ns,
		.end_ns = e->head.time_ns,
		.name = build_intern(b, NAME_OF(overhead_kinds, e->what >> 16)),
		.process = build_process_of(b, &e->head),
		.tid = e->head.tid,
	};

	if (b->err)
		return b->err;
	if (!time_possible(o.start_ns, o.end_ns)) {
		b->counts[TL_GPU_TIME_INVALID]++;
		return 0;
	}
	build_extend_time(b, o.start_ns, o.end_ns);
	return vec_push(&b->t->gpu.overhead, o) ?: add_overhead_call(b, &e->head, &o);
}

const struct tl_device *tl_gpus__device(const struct tl_gpus *gpu, uint32_t process,
					uint32_t device)
{
	for (size_t i = 0; i < gpu->described.nr; i++)
		if (gpu->described.items[i].process == process &&
		    gpu->described.items[i].reported.device == device)
			return &gpu->described.items[i];
	return NULL;
}

/* Keeps the first description of a GPU; there are not many GPUs. */
static int read_device(struct build *b, const struct gp_ev_device *e, size_t bytes)
{
	struct tl_device d = {.process = build_process_of(b, &e->head)};

	memcpy(&d.reported, e, bytes < sizeof(d.reported) ? bytes : sizeof(d.reported));
	d.name = intern__get(b->t->private->intern, e->name, strnlen(e->name, sizeof(e->name)));
	if (!d.name)
		b->err = -ENOMEM;
	if (b->err || tl_gpus__device(&b->t->gpu, d.process, e->device) ||
	    b->t->gpu.described.nr >= DEVICES_MAX)
		return b->err;
	return vec_push(&b->t->gpu.described, d);
}

/* Compares two successive readings of a process. */
static void between(struct tl_gpus *gpu, const struct clock_reading *from,
		    const struct clock_reading *to)
{
	uint64_t passed_ns = to->time_ns - from->time_ns;
	int64_t moved_ns = (int64_t)(passed_ns - (to->gpu_ns - from->gpu_ns));
	uint64_t off_ns = moved_ns < 0 ? -(uint64_t)moved_ns : (uint64_t)moved_ns;
	uint64_t error_ns = from->width_ns > to->width_ns ? from->width_ns : to->width_ns;

	/* The same rule by which the collector decides to convert from a single reading. */
	if (to->gpu_ns < from->gpu_ns ||
	    off_ns > passed_ns / CLOCK_DRIFT_PART + from->width_ns + to->width_ns) {
		gpu->clock_steps++;
		off_ns = passed_ns / CLOCK_DRIFT_PART;
	}
	error_ns += off_ns;
	if (error_ns > gpu->clock_error_ns)
		gpu->clock_error_ns = error_ns;
}

static int read_clock(struct build *b, const struct gp_ev_clock *e)
{
	struct clock_reading now = {e->head.time_ns, e->gpu_ns, e->width_ns};
	const uint64_t *known = hash__find(&b->gpu.clock_of, e->head.process);
	struct tl_gpus *gpu = &b->t->gpu;

	if (now.time_ns >= TL_TIME_END_NS || now.width_ns >= TL_TIME_END_NS) {
		b->counts[TL_GPU_TIME_INVALID]++;
		return 0;
	}
	gpu->clock_readings++;
	if (now.width_ns > gpu->clock_error_ns)
		gpu->clock_error_ns = now.width_ns;
	if (known) {
		if (b->gpu.clocks.items[*known].time_ns <= now.time_ns)
			between(gpu, &b->gpu.clocks.items[*known], &now);
		b->gpu.clocks.items[*known] = now;
		return 0;
	}
	if (hash__set(&b->gpu.clock_of, e->head.process, b->gpu.clocks.nr))
		return -ENOMEM;
	return vec_push(&b->gpu.clocks, now);
}

static int read_kind(struct build *b, uint8_t kind, const void *event, size_t bytes)
{
	switch (kind) {
	case GP_EV_API:
		return read_api(b, event, bytes);
	case GP_EV_KERNEL:
		return read_kernel(b, event);
	case GP_EV_GPU_MEMORY:
		return read_gpu_memory(b, event);
	case GP_EV_SYNC:
		return read_sync(b, event, bytes);
	case GP_EV_CUDA_EVENT:
		return read_cuda_event(b, event);
	case GP_EV_COLLECTIVE:
		return read_collective(b, event);
	case GP_EV_OVERHEAD:
		return read_overhead(b, event);
	case GP_EV_DEVICE:
		return read_device(b, event, bytes);
	case GP_EV_CLOCK:
		return read_clock(b, event);
	default:
		return NOT_OF_GPUS;
	}
}

int build_read_gpu(struct build *b, const void *event, size_t bytes)
{
	int err = read_kind(b, ((const struct gp_ev_head *)event)->kind, event, bytes);

	if (err == NOT_OF_GPUS)
		return 0;
	b->t->gpu.any = true;
	return err;
}
