/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A record does not hold its own length; it ends where the next one begins. A field is read only if
 * the record is long enough for it, so records of older CUPTIs are read as far as they go.
 */
#include "collector/cupti/cupti_records.h"

#include "collector/cupti/cupti_api_filter.h"
#include "collector/runtime/compat.h"
#include "common/api_name.h"
#include "common/clock.h"

#include <string.h>
#include <time.h>

#define ROOM_TRIES 500 /* of 1 ms, for gpuprof to read some of the ring */
#define NO_DEVICE  UINT32_MAX

/* Whether a record of `bytes` bytes has the field. */
#define HAS(bytes, type, field) ((bytes) >= offsetof(type, field) + sizeof(((type *)0)->field))

void cupti_records__init(struct cupti_records *r, struct ring_writer *ring, struct names *names,
			 const struct cupti_library *library, const struct cupti_clock *clock)
{
	memset(r, 0, sizeof(*r));
	r->ring = ring;
	r->names = names;
	r->library = library;
	r->clock = clock;
}

void cupti_records__set_own_thread(struct cupti_records *r, uint32_t tid)
{
	__atomic_store_n(&r->own_thread, tid, __ATOMIC_RELAXED);
}

static bool is_own(const struct cupti_records *r, uint32_t tid)
{
	return tid && tid == __atomic_load_n(&r->own_thread, __ATOMIC_RELAXED);
}

static bool has_room(const struct ring_writer *w)
{
	uint64_t used = __atomic_load_n(&w->page->head, __ATOMIC_RELAXED) -
			__atomic_load_n(&w->page->tail, __ATOMIC_RELAXED);

	return used < w->data_bytes - w->data_bytes / 8;
}

/* Waits until the ring has room. This thread may wait, unlike those of the process, and gpuprof
 * empties the ring every few milliseconds. The last eighth is left to the process's threads. After
 * a timeout there is no further wait until gpuprof has read. */
static void wait_for_room(struct cupti_records *r)
{
	for (int i = 0; i < ROOM_TRIES && !r->reader_gone; i++) {
		if (has_room(r->ring))
			return;
		clock_sleep_ms();
	}
	r->reader_gone = !has_room(r->ring);
}

static void put(struct cupti_records *r, const void *event, size_t bytes)
{
	wait_for_room(r);
	(void)ring_writer__write(r->ring, event, bytes);
}

/* Converts the record's times. False if that is not possible, which is counted. */
static bool convert_times(struct cupti_records *r, uint64_t start, uint64_t end,
			  uint64_t *ret_start_ns, uint64_t *ret_end_ns)
{
	enum clock_result first, last;

	if (!start || !end || end < start) {
		ring_writer__count(r->ring, GP_LOSS_GPU_TIME, 1);
		return false;
	}
	first = cupti_clock__convert(r->clock, start, ret_start_ns);
	last = cupti_clock__convert(r->clock, end, ret_end_ns);
	if (first == CLOCK_CONVERTED && last == CLOCK_CONVERTED && *ret_start_ns <= *ret_end_ns)
		return true;
	ring_writer__count(r->ring,
			   first == CLOCK_EARLY && last != CLOCK_UNSTEADY ? GP_LOSS_OPEN_AT_START
									  : GP_LOSS_GPU_CLOCK,
			   1);
	return false;
}

/* ---- names ---- */

static uint32_t name_of(struct cupti_records *r, const char *text)
{
	const struct name *name;

	wait_for_room(r);
	name = names__get(r->names, r->ring, text);
	return name ? name->id : 0;
}

static uint32_t kernel_name(struct cupti_records *r, const char *text)
{
	struct kernel_name *c = &r->kernel_names[((uintptr_t)text >> 3 ^ (uintptr_t)text >> 13) &
						 (RECORDS_KERNELS - 1)];
	const struct name *name;

	if (!text)
		return 0;
	/* Compares content, too: an unloaded module leaves its memory to other names. */
	if (c->pointer == text && !strncmp(text, c->name->text, NAMES_TEXT_BYTES))
		return c->name->id;
	wait_for_room(r);
	name = names__get(r->names, r->ring, text);
	if (!name)
		return 0;
	*c = (struct kernel_name){text, name};
	return name->id;
}

static uint32_t api_name(struct cupti_records *r, bool driver, uint32_t cbid)
{
	uint32_t domain = driver ? CUPTI_DOMAIN_DRIVER : CUPTI_DOMAIN_RUNTIME;
	const char *name = NULL;
	char text[128];
	size_t bytes;
	uint32_t id;

	if (cbid < RECORDS_CBIDS && r->api_names[driver][cbid])
		return r->api_names[driver][cbid];
	if (r->library->call.cuptiGetCallbackName(domain, cbid, &name) || !name)
		return 0;
	r->graphs_seen |= cupti_is_of_graphs(name);
	bytes = api_name_without_version(name, strlen(name));
	if (bytes > sizeof(text) - 1)
		bytes = sizeof(text) - 1;
	memcpy(text, name, bytes);
	text[bytes] = '\0';
	id = name_of(r, text);
	if (cbid < RECORDS_CBIDS)
		r->api_names[driver][cbid] = id;
	return id;
}

/* Whether a driver function only queries something. One without a name does not. */
static bool only_asks(struct cupti_records *r, uint32_t cbid)
{
	const char *name = NULL;
	bool asks;

	if (cbid < RECORDS_CBIDS && r->asks[cbid] != ASKS_UNKNOWN)
		return r->asks[cbid] == ASKS_ONLY;
	asks = !r->library->call.cuptiGetCallbackName(CUPTI_DOMAIN_DRIVER, cbid, &name) && name &&
	       cupti_only_asks(name);
	if (cbid < RECORDS_CBIDS)
		r->asks[cbid] = asks ? ASKS_ONLY : ASKS_NO;
	return asks;
}

/* ---- records, by kind ---- */

static void put_kernel(struct cupti_records *r, const struct cupti_kernel *k, size_t bytes)
{
	struct gp_ev_kernel ev = {.head.kind = GP_EV_KERNEL};
	uint64_t start_ns, end_ns, queued_ns;

	if (HAS(bytes, struct cupti_kernel, graph_node))
		r->graphs_seen |= k->graph_node != 0;
	if (!convert_times(r, k->start, k->end, &start_ns, &end_ns))
		return;
	ev.head.time_ns = end_ns;
	ev.start_ns = start_ns;
	if (k->queued && !cupti_clock__convert(r->clock, k->queued, &queued_ns) &&
	    queued_ns <= start_ns)
		ev.queued_ns = queued_ns;
	ev.correlation_id = k->correlation_id;
	ev.name_id = kernel_name(r, k->name);
	ev.device = k->device;
	ev.context = k->context;
	ev.stream = k->stream;
	ev.registers = k->registers_per_thread;
	for (int i = 0; i < 3; i++) {
		ev.grid[i] = (uint32_t)k->grid[i];
		ev.block[i] = (uint32_t)k->block[i];
	}
	ev.static_shared_bytes = k->static_shared_bytes;
	ev.dynamic_shared_bytes = k->dynamic_shared_bytes;
	if (HAS(bytes, struct cupti_kernel, graph)) {
		ev.graph_node = k->graph_node;
		ev.graph = k->graph;
	}
	put(r, &ev, sizeof(ev));
}

/* Converts CUPTI's times and writes the event. */
static void put_memory(struct cupti_records *r, struct gp_ev_gpu_memory *ev, uint64_t start,
		       uint64_t end)
{
	uint64_t start_ns, end_ns;

	r->graphs_seen |= ev->graph_node != 0;
	if (!convert_times(r, start, end, &start_ns, &end_ns))
		return;
	ev->start_ns = start_ns;
	ev->head.time_ns = end_ns;
	put(r, ev, sizeof(*ev));
}

static void put_copy(struct cupti_records *r, const struct cupti_copy *c, size_t bytes)
{
	struct gp_ev_gpu_memory ev = {
		.head.kind = GP_EV_GPU_MEMORY,
		.bytes = c->bytes,
		.correlation_id = c->correlation_id,
		.device = c->device,
		.context = c->context,
		.stream = c->stream,
		.copy_kind = c->copy_kind,
		.src_kind = c->src_kind,
		.dst_kind = c->dst_kind,
		.peer_device = NO_DEVICE,
	};

	if (HAS(bytes, struct cupti_copy, graph_node))
		ev.graph_node = c->graph_node;
	if (HAS(bytes, struct cupti_copy, graph))
		ev.graph = c->graph;
	put_memory(r, &ev, c->start, c->end);
}

static void put_peer_copy(struct cupti_records *r, const struct cupti_peer_copy *c, size_t bytes)
{
	struct gp_ev_gpu_memory ev = {
		.head.kind = GP_EV_GPU_MEMORY,
		.bytes = c->bytes,
		.correlation_id = c->correlation_id,
		.device = c->device,
		.context = c->context,
		.stream = c->stream,
		.copy_kind = c->copy_kind,
		.src_kind = c->src_kind,
		.dst_kind = c->dst_kind,
		.peer_device = c->dst_device,
	};

	if (HAS(bytes, struct cupti_peer_copy, graph_node))
		ev.graph_node = c->graph_node;
	if (HAS(bytes, struct cupti_peer_copy, graph))
		ev.graph = c->graph;
	put_memory(r, &ev, c->start, c->end);
}

static void put_set(struct cupti_records *r, const struct cupti_set *s, size_t bytes)
{
	struct gp_ev_gpu_memory ev = {
		.head.kind = GP_EV_GPU_MEMORY,
		.bytes = s->bytes,
		.correlation_id = s->correlation_id,
		.device = s->device,
		.context = s->context,
		.stream = s->stream,
		.is_set = 1,
		.src_kind = (uint8_t)s->memory_kind,
		.peer_device = NO_DEVICE,
	};

	if (HAS(bytes, struct cupti_set, graph_node))
		ev.graph_node = s->graph_node;
	if (HAS(bytes, struct cupti_set, graph))
		ev.graph = s->graph;
	put_memory(r, &ev, s->start, s->end);
}

/* Whether the call is left out. A CUPTI that cannot leave out single calls still records them. */
static bool is_filtered(struct cupti_records *r, const struct cupti_api_call *a)
{
	bool driver = a->kind == CUPTI_DRIVER;
	const uint16_t *noisy = driver ? cupti_filtered_driver : cupti_filtered_runtime;
	size_t nr = driver ? sizeof(cupti_filtered_driver) : sizeof(cupti_filtered_runtime);

	for (size_t i = 0; i < nr / sizeof(*noisy); i++)
		if (a->cbid == noisy[i])
			return true;
	return driver && only_asks(r, a->cbid);
}

static void put_api(struct cupti_records *r, const struct cupti_api_call *a, size_t bytes)
{
	bool driver = a->kind == CUPTI_DRIVER;
	struct gp_ev_api ev = {
		.head = {.kind = GP_EV_API, .flags = GP_API_CUPTI, .tid = a->thread},
		.cbid = a->cbid,
		.correlation_id = a->correlation_id,
		.result = a->result,
	};
	uint64_t start_ns, end_ns;

	if (is_own(r, a->thread) || is_filtered(r, a))
		return;
	ev.name_id = api_name(r, driver, a->cbid);
	if (!convert_times(r, a->start, a->end, &start_ns, &end_ns))
		return;
	if (driver)
		ev.head.flags |= GP_API_DRIVER;
	ev.start_ns = start_ns;
	ev.head.time_ns = end_ns;
	put(r, &ev, sizeof(ev));
}

static void put_sync(struct cupti_records *r, const struct cupti_sync *s, size_t bytes)
{
	struct gp_ev_sync_event ev = {
		.sync.head.kind = GP_EV_SYNC,
		.sync.correlation_id = s->correlation_id,
		.sync.what = s->type,
		.sync.context = s->context,
		.sync.stream = s->stream,
		.sync.event = s->event == CUPTI_NO_VALUE ? 0 : s->event,
	};
	uint64_t start_ns, end_ns;

	if (!convert_times(r, s->start, s->end, &start_ns, &end_ns))
		return;
	ev.sync.start_ns = start_ns;
	ev.sync.head.time_ns = end_ns;
	if (HAS(bytes, struct cupti_sync, record_id) && ev.sync.event)
		ev.record_id = s->record_id;
	put(r, &ev, sizeof(ev));
}

/* Writes a CUDA event. CUPTI gives the time at which the GPU reached it only if that was asked for.
 * An event whose time cannot be converted, which is counted, is written without it, because waits
 * refer to it. */
static void put_event(struct cupti_records *r, const struct cupti_event *e, size_t bytes)
{
	struct gp_ev_cuda_event ev = {
		.head.kind = GP_EV_CUDA_EVENT,
		.correlation_id = e->correlation_id,
		.context = e->context,
		.stream = e->stream,
		.event = e->event,
		.device = NO_DEVICE,
	};
	uint64_t device_ns = 0, end_ns;

	if (HAS(bytes, struct cupti_event, device))
		ev.device = e->device;
	if (HAS(bytes, struct cupti_event, record_id)) {
		ev.record_id = e->record_id;
		device_ns = e->device_time;
	}
	ev.head.time_ns = cupti_clock__last_ns(r->clock);
	if (device_ns && convert_times(r, device_ns, device_ns, &device_ns, &end_ns)) {
		ev.head.time_ns = device_ns;
		ev.head.flags = GP_CUDA_EVENT_TIMED;
	}
	put(r, &ev, sizeof(ev));
}

static void put_overhead(struct cupti_records *r, const struct cupti_overhead *o, size_t bytes)
{
	struct gp_ev_overhead ev = {.head.kind = GP_EV_OVERHEAD, .what = o->what};
	uint64_t start_ns, end_ns;
	/* Older versions do not use the kind of thread id that was asked for. */
	bool has_thread =
		o->object_kind == CUPTI_OBJECT_THREAD && r->library->version >= CUPTI_VERSION_12_4;

	if (has_thread && is_own(r, o->thread))
		return;
	/* CUPTI has no times for some of them, which is no loss. */
	if ((!o->start && !o->end) || !convert_times(r, o->start, o->end, &start_ns, &end_ns))
		return;
	if (has_thread)
		ev.head.tid = o->thread;
	ev.start_ns = start_ns;
	ev.head.time_ns = end_ns;
	put(r, &ev, sizeof(ev));
}

/* The length of each kind in the oldest CUPTI; 0: not a kind that we switched on. */
static size_t least_bytes(uint32_t kind)
{
	switch (kind) {
	case CUPTI_KERNEL:
		return offsetof(struct cupti_kernel, launch_type);
	case CUPTI_MEMCPY:
		return offsetof(struct cupti_copy, runtime_correlation_id);
	case CUPTI_PEER_COPY:
		return offsetof(struct cupti_peer_copy, reserved0);
	case CUPTI_MEMSET:
		return offsetof(struct cupti_set, pad);
	case CUPTI_RUNTIME:
	case CUPTI_DRIVER:
		return sizeof(struct cupti_api_call);
	case CUPTI_SYNC:
		return offsetof(struct cupti_sync, record_id);
	case CUPTI_EVENT:
		return offsetof(struct cupti_event, pad);
	case CUPTI_OVERHEAD:
		return sizeof(struct cupti_overhead);
	default:
		return 0;
	}
}

/* Converts one record, of which `bytes` bytes may be read. */
static void convert_one(struct cupti_records *r, const void *record, size_t bytes)
{
	uint32_t kind = bytes >= sizeof(kind) ? ((const struct cupti_record *)record)->kind : 0;
	size_t least = least_bytes(kind);

	if (bytes < sizeof(kind) || bytes < least) {
		ring_writer__count(r->ring, GP_LOSS_RECORD, 1);
		return;
	}
	switch (kind) {
	case CUPTI_KERNEL:
		put_kernel(r, record, bytes);
		break;
	case CUPTI_MEMCPY:
		put_copy(r, record, bytes);
		break;
	case CUPTI_PEER_COPY:
		put_peer_copy(r, record, bytes);
		break;
	case CUPTI_MEMSET:
		put_set(r, record, bytes);
		break;
	case CUPTI_RUNTIME:
	case CUPTI_DRIVER:
		put_api(r, record, bytes);
		break;
	case CUPTI_SYNC:
		put_sync(r, record, bytes);
		break;
	case CUPTI_EVENT:
		put_event(r, record, bytes);
		break;
	case CUPTI_OVERHEAD:
		put_overhead(r, record, bytes);
		break;
	}
}

void cupti_records__convert(struct cupti_records *r, uint8_t *buffer, size_t valid_bytes)
{
	uint8_t *end = buffer + valid_bytes;
	uint8_t *last = NULL;
	void *next = NULL;
	int result;

	while (!(result =
			 r->library->call.cuptiActivityGetNextRecord(buffer, valid_bytes, &next))) {
		uint8_t *now = next;

		if (now < buffer || now >= end || (last && now <= last))
			break;
		if (last)
			convert_one(r, last, (size_t)(now - last));
		last = now;
	}
	if (last)
		convert_one(r, last, (size_t)(end - last));
	/* CUPTI reports the end of the buffer as a limit. */
	if (result != CUPTI_LIMIT_REACHED)
		ring_writer__count(r->ring, GP_LOSS_RECORD, 1);
}
