/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Takes one record of each kind, as one version of CUPTI writes it, filled in by the names of its
 * own headers, through the collector's code and out of the ring. Every value must come out, and
 * nothing of what lies behind the record. The command that compiles this names the newest layouts
 * (KERNEL, COPY, PEER_COPY, SET, SYNC, EVENT, OVERHEAD) and which of their newer fields exist.
 */
#include "collector/cupti/cupti_records.h"
#include "unit/ring_ends.h"

#include <cuda.h>
#include <cupti_activity.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BASE	 1700000000000000000ULL /* CUPTI's clock minus ours */
#define S	 1000000000ULL
#define FIRST_ID 32768
#define RUBBISH	 0xa5
#define BEHIND	 64 /* bytes of rubbish after a record */
#define NODE	 (1ULL << 40)

static struct {
	struct ring_writer w;
	struct ring_reader *r;
	struct cupti_records records;
	struct cupti_clock clock;
	uint64_t begin_ns;
	unsigned events_nr, wrong_nr;
	union {
		struct gp_ev_head head;
		struct gp_ev_kernel kernel;
		struct gp_ev_gpu_memory memory;
		struct gp_ev_api api;
		struct gp_ev_sync_event sync;
		struct gp_ev_cuda_event event;
		struct gp_ev_overhead overhead;
	} out;
} t;

#define EQUAL(value, wanted)                                                                       \
	do {                                                                                       \
		if ((unsigned long long)(value) == (unsigned long long)(wanted))                   \
			break;                                                                     \
		printf("%s: %s is %llu, not %llu\n", __func__, #value,                             \
		       (unsigned long long)(value), (unsigned long long)(wanted));                 \
		t.wrong_nr++;                                                                      \
	} while (0)

static int next_record(uint8_t *buffer, size_t valid_bytes, void **record)
{
	if (*record)
		return CUPTI_LIMIT_REACHED;
	*record = buffer;
	return CUPTI_OK;
}

static int callback_name(uint32_t domain, uint32_t cbid, const char **ret_name)
{
	*ret_name = domain == CUPTI_DOMAIN_DRIVER ? "cuLaunchKernel" : "cudaLaunchKernel_v7000";
	return CUPTI_OK;
}

static int take(const void *event, size_t bytes, void *arg)
{
	const struct gp_ev_head *head = event;

	if (head->kind == GP_EV_NAME)
		return 0;
	t.events_nr++;
	memcpy(&t.out, event, bytes < sizeof(t.out) ? bytes : sizeof(t.out));
	return 0;
}

/* Through the collector, with rubbish behind it; whether one event of that kind came out. */
static bool convert(const void *record, size_t bytes, uint32_t kind)
{
	uint8_t *buffer = aligned_alloc(8, (bytes + BEHIND + 7) & ~7UL);

	if (!buffer)
		abort();
	memset(buffer, RUBBISH, bytes + BEHIND);
	memcpy(buffer, record, bytes);
	memset(&t.out, 0, sizeof(t.out));
	t.events_nr = 0;
	cupti_records__convert(&t.records, buffer, bytes);
	free(buffer);
	if (ring_reader__drain(t.r, take, NULL) < 0)
		abort();
	if (t.events_nr == 1 && t.out.head.kind == kind)
		return true;
	printf("a record of %zu bytes gave %u events, the last of kind %u, not one of kind %u\n",
	       bytes, t.events_nr, t.out.head.kind, kind);
	t.wrong_nr++;
	return false;
}

#define TIMES .start = t.begin_ns + BASE + 1000, .end = t.begin_ns + BASE + 3000
#define EQUAL_TIMES(ev)                                                                            \
	do {                                                                                       \
		EQUAL((ev).start_ns, t.begin_ns + 1000);                                           \
		EQUAL((ev).head.time_ns, t.begin_ns + 3000);                                       \
	} while (0)

static void check_kernel(void)
{
	KERNEL k = {
		.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
		.registersPerThread = 77,
		TIMES,
		.queued = t.begin_ns + BASE + 500,
		.deviceId = 2,
		.contextId = 3,
		.streamId = 4,
		.gridX = 5,
		.gridY = 6,
		.gridZ = 7,
		.blockX = 8,
		.blockY = 9,
		.blockZ = 10,
		.staticSharedMemory = 11,
		.dynamicSharedMemory = 12,
		.correlationId = 0xfffffff0,
		.name = "_Z3addPf",
		.graphNodeId = NODE,
		.graphId = 15,
	};

	if (!convert(&k, sizeof(k), GP_EV_KERNEL))
		return;
	EQUAL_TIMES(t.out.kernel);
	EQUAL(t.out.kernel.queued_ns, t.begin_ns + 500);
	EQUAL(t.out.kernel.registers, 77);
	EQUAL(t.out.kernel.device, 2);
	EQUAL(t.out.kernel.context, 3);
	EQUAL(t.out.kernel.stream, 4);
	for (int i = 0; i < 3; i++) {
		EQUAL(t.out.kernel.grid[i], 5 + i);
		EQUAL(t.out.kernel.block[i], 8 + i);
	}
	EQUAL(t.out.kernel.static_shared_bytes, 11);
	EQUAL(t.out.kernel.dynamic_shared_bytes, 12);
	EQUAL(t.out.kernel.correlation_id, 0xfffffff0);
	EQUAL(t.out.kernel.name_id, FIRST_ID);
	EQUAL(t.out.kernel.graph_node, NODE);
	EQUAL(t.out.kernel.graph, 15);
}

/* What all of copies and sets have. */
static void check_memory(uint32_t peer)
{
	EQUAL_TIMES(t.out.memory);
	EQUAL(t.out.memory.bytes, 4096);
	EQUAL(t.out.memory.device, 1);
	EQUAL(t.out.memory.context, 5);
	EQUAL(t.out.memory.stream, 6);
	EQUAL(t.out.memory.correlation_id, 99);
	EQUAL(t.out.memory.graph_node, NODE);
	EQUAL(t.out.memory.graph, 8);
	EQUAL(t.out.memory.peer_device, peer);
}

static void check_kinds(void)
{
	EQUAL(t.out.memory.is_set, 0);
	EQUAL(t.out.memory.copy_kind, 1);
	EQUAL(t.out.memory.src_kind, 2);
	EQUAL(t.out.memory.dst_kind, 3);
}

#define MEMORY                                                                                     \
	TIMES, .bytes = 4096, .deviceId = 1, .contextId = 5, .streamId = 6, .correlationId = 99,   \
	       .graphNodeId = NODE, .graphId = 8
#define KINDS .copyKind = 1, .srcKind = 2, .dstKind = 3

static void check_copies(void)
{
	COPY c = {.kind = CUPTI_ACTIVITY_KIND_MEMCPY, MEMORY, KINDS};
	PEER_COPY p = {.kind = CUPTI_ACTIVITY_KIND_MEMCPY2,
		       MEMORY,
		       KINDS,
		       .srcDeviceId = 1,
		       .dstDeviceId = 7};
	SET s = {.kind = CUPTI_ACTIVITY_KIND_MEMSET, MEMORY, .memoryKind = 3};

	if (convert(&c, sizeof(c), GP_EV_GPU_MEMORY)) {
		check_memory(UINT32_MAX);
		check_kinds();
	}
	if (convert(&p, sizeof(p), GP_EV_GPU_MEMORY)) {
		check_memory(7);
		check_kinds();
	}
	if (convert(&s, sizeof(s), GP_EV_GPU_MEMORY)) {
		check_memory(UINT32_MAX);
		EQUAL(t.out.memory.is_set, 1);
		EQUAL(t.out.memory.src_kind, 3);
	}
}

static void check_call(CUpti_ActivityKind kind, uint8_t flags)
{
	CUpti_ActivityAPI a = {
		.kind = kind,
		.cbid = 211,
		TIMES,
		.processId = 16,
		.threadId = 17,
		.correlationId = 18,
		.returnValue = 2,
	};

	if (!convert(&a, sizeof(a), GP_EV_API))
		return;
	EQUAL_TIMES(t.out.api);
	EQUAL(t.out.api.cbid, 211);
	EQUAL(t.out.api.head.tid, 17);
	EQUAL(t.out.api.head.flags, flags);
	EQUAL(t.out.api.correlation_id, 18);
	EQUAL(t.out.api.result, 2);
}

static void check_sync(void)
{
	SYNC s = {
		.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
		.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT,
		TIMES,
		.correlationId = 18,
		.contextId = 3,
		.streamId = 4,
		.cudaEventId = 5,
#ifdef RECORD_ID
		.cudaEventSyncId = NODE,
#endif
	};

	if (!convert(&s, sizeof(s), GP_EV_SYNC))
		return;
	EQUAL_TIMES(t.out.sync.sync);
	EQUAL(t.out.sync.sync.what, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT);
	EQUAL(t.out.sync.sync.correlation_id, 18);
	EQUAL(t.out.sync.sync.context, 3);
	EQUAL(t.out.sync.sync.stream, 4);
	EQUAL(t.out.sync.sync.event, 5);
#ifdef RECORD_ID
	EQUAL(t.out.sync.record_id, NODE);
#else
	EQUAL(t.out.sync.record_id, 0);
#endif
}

static void check_event(void)
{
	EVENT e = {
		.kind = CUPTI_ACTIVITY_KIND_CUDA_EVENT,
		.correlationId = 18,
		.contextId = 3,
		.streamId = 4,
		.eventId = 5,
#ifdef RECORD_ID
		.deviceId = 6,
		.deviceTimestamp = t.begin_ns + BASE + 2000,
		.cudaEventSyncId = NODE,
#endif
	};

	if (!convert(&e, sizeof(e), GP_EV_CUDA_EVENT))
		return;
	EQUAL(t.out.event.correlation_id, 18);
	EQUAL(t.out.event.context, 3);
	EQUAL(t.out.event.stream, 4);
	EQUAL(t.out.event.event, 5);
#ifdef RECORD_ID
	EQUAL(t.out.event.device, 6);
	EQUAL(t.out.event.record_id, NODE);
	EQUAL(t.out.event.head.time_ns, t.begin_ns + 2000);
	EQUAL(t.out.event.head.flags, GP_CUDA_EVENT_TIMED);
#else
	EQUAL(t.out.event.device, UINT32_MAX);
	EQUAL(t.out.event.record_id, 0);
	EQUAL(t.out.event.head.flags, 0);
#endif
}

static void check_overhead(void)
{
	OVERHEAD o = {
		.kind = CUPTI_ACTIVITY_KIND_OVERHEAD,
		.overheadKind = CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH,
		.objectKind = CUPTI_ACTIVITY_OBJECT_THREAD,
		.objectId.pt = {.processId = 16, .threadId = 17},
		TIMES,
	};

	if (!convert(&o, sizeof(o), GP_EV_OVERHEAD))
		return;
	EQUAL_TIMES(t.out.overhead);
	EQUAL(t.out.overhead.what, CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH);
	EQUAL(t.out.overhead.head.tid, 17);
}

int main(void)
{
	static const struct cupti_library library = {
		.version = CUPTI_VERSION_13_0,
		.call = {.cuptiActivityGetNextRecord = next_record,
			 .cuptiGetCallbackName = callback_name},
	};
	struct clock_reading reading;

	t.begin_ns = clock_now_ns();
	if (ring_ends_open(&t.w, &t.r, 1 << 16))
		return 2;
	cupti_clock__init(&t.clock);
	reading = (struct clock_reading){t.begin_ns, t.begin_ns + BASE, 100};
	(void)cupti_clock__add(&t.clock, &reading);
	reading = (struct clock_reading){t.begin_ns + S, t.begin_ns + S + BASE, 100};
	(void)cupti_clock__add(&t.clock, &reading);
	cupti_records__init(&t.records, &t.w, names__new(FIRST_ID), &library, &t.clock);
	check_kernel();
	check_copies();
	check_call(CUPTI_ACTIVITY_KIND_RUNTIME, GP_API_CUPTI);
	check_call(CUPTI_ACTIVITY_KIND_DRIVER, GP_API_CUPTI | GP_API_DRIVER);
	check_sync();
	check_event();
	check_overhead();
	return t.wrong_nr != 0;
}
