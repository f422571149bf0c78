/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The stand-in for libcupti.so.12: one subscriber, and activity records in the caller's buffers,
 * with the sizes of the version that it plays. Records wait for a flush, or until there are many.
 * Then the thread whose call made them many delivers them, as in the real one.
 */
#include "collector/cupti/cupti_abi.h"
#include "fake/fake_gpu.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PUBLIC		FAKE_GPU_PUBLIC
#define MANY		2000
#define DEFAULT_VERSION 26 /* CUDA 12.8 */
#define GRAPH_VERSION	14 /* copies know their graph */
#define BIG_VERSION	18
#define QUIET_VERSION	23     /* single calls can be switched off */
#define THERE_SAFE	24     /* before, taking it down breaks processes with graphs */
#define MEANWHILE_SAFE	130000 /* before, those whose graphs came while it was in use */
#define RECORD_VERSION	26     /* synchronisations name the record of their event */
#define REFUSAL_VERSION 27
#define EVENT_VERSION	27 /* events are a kind of their own; before, they come with SYNC */
#define KINDS		64
#define CBIDS		1024
#define MEMORY_PAGEABLE 1
#define MEMORY_DEVICE	3
#define FROM_HOST	1
#define TO_HOST		2
#define PEER_TO_PEER	10
#define BUFFER_FLUSH	(1 << 16)
#define INSTRUMENTATION (2 << 16)

PUBLIC int cuptiGetVersion(uint32_t *ret_version);
PUBLIC int cuptiGetTimestamp(uint64_t *ret_ns);
PUBLIC int cuptiSubscribe(void **ret_subscriber, cupti_callback_fn fn, void *arg);
PUBLIC int cuptiUnsubscribe(void *subscriber);
PUBLIC int cuptiEnableDomain(uint32_t enable, void *subscriber, uint32_t domain);
PUBLIC int cuptiActivityRegisterCallbacks(cupti_request_fn request, cupti_complete_fn complete);
PUBLIC int cuptiActivityEnable(uint32_t kind);
PUBLIC int cuptiActivityDisable(uint32_t kind);
PUBLIC int cuptiActivityFlushAll(uint32_t flags);
PUBLIC int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid_bytes, void **record);
PUBLIC int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *ret_nr);
PUBLIC int cuptiGetCallbackName(uint32_t domain, uint32_t cbid, const char **ret_name);
PUBLIC int cuptiGetResultString(int result, const char **ret_text);
PUBLIC int cuptiGetThreadIdType(uint32_t *ret_type);
PUBLIC int cuptiSetThreadIdType(uint32_t type);
PUBLIC int cuptiFinalize(void);
PUBLIC int cuptiActivityEnableRuntimeApi(uint32_t cbid, uint8_t enable);
PUBLIC int cuptiActivityEnableDriverApi(uint32_t cbid, uint8_t enable);
PUBLIC int cuptiActivityEnableCudaEventDeviceTimestamps(uint8_t enable);

static struct {
	pthread_mutex_t delivery;
	uint8_t *buffer;
	size_t bytes, used, buffer_bytes;
	size_t dropped;
	uint32_t thread_ids, domains, version;
	unsigned graphs_max; /* as it is taken down */
	unsigned slow_ms;    /* that it takes to subscribe, the first time, */
	unsigned end_ms;     /* and to be taken down, */
	unsigned off_ms;     /* and its records to be switched off, once */
	uint64_t
		keeps_nr; /* buffers that it asks for once it is subscribed, and never gives back */
	bool subscribed, emits_overhead, emits_last, times_events, kinds[KINDS], silent[2][CBIDS];
	bool has_kept;
	bool enabled; /* any kind, since it was subscribed */
	cupti_request_fn request;
	cupti_complete_fn complete;
	cupti_callback_fn callback;
	void *callback_arg;
	const char *names[3][CBIDS]; /* by domain: of calls that were made */
} cupti = {.delivery = PTHREAD_MUTEX_INITIALIZER};

/* Where it may be taken down. */
static __thread bool in_callback;

__attribute__((constructor)) static void begin(void)
{
	cupti.version = (uint32_t)fake_gpu_setting("FAKE_CUPTI_VERSION", DEFAULT_VERSION);
	cupti.emits_overhead = fake_gpu_setting("FAKE_CUPTI_OVERHEAD", 0);
	cupti.emits_last = fake_gpu_setting("FAKE_CUPTI_LAST", 0);
	cupti.buffer_bytes = fake_gpu_setting("FAKE_CUPTI_BUFFER", SIZE_MAX);
	cupti.keeps_nr = fake_gpu_setting("FAKE_CUPTI_KEEPS", 0);
	cupti.slow_ms = (unsigned)fake_gpu_setting("FAKE_CUPTI_SLOW_MS", 0);
	cupti.off_ms = (unsigned)fake_gpu_setting("FAKE_CUPTI_OFF_MS", 0);
	cupti.end_ms = (unsigned)fake_gpu_setting("FAKE_CUPTI_END_MS", 0);
}

/* ---- records ---- */

static size_t record_bytes(uint32_t kind)
{
	bool graph = cupti.version >= GRAPH_VERSION, big = cupti.version >= BIG_VERSION;

	switch (kind) {
	case CUPTI_KERNEL:
		return big ? 208 : 160;
	case CUPTI_MEMCPY:
	case CUPTI_MEMSET:
		return big ? 88 : (graph ? 80 : 72);
	case CUPTI_SYNC:
		return cupti.version >= RECORD_VERSION ? 56 : 40;
	case CUPTI_EVENT:
		return cupti.version >= RECORD_VERSION ? 56 : 24;
	case CUPTI_PEER_COPY:
		return graph ? sizeof(struct cupti_peer_copy) : 80;
	default:
		return 40;
	}
}

static void give_back(void)
{
	uint8_t *buffer = cupti.buffer;

	if (!buffer)
		return;
	cupti.buffer = NULL;
	fake_gpu_count("buffers");
	cupti.complete(NULL, 0, buffer, cupti.bytes, cupti.used);
}

/* NULL is an answer from CUDA 12.9 on. */
static uint8_t *ask_for_buffer(size_t *ret_bytes)
{
	uint8_t *buffer = NULL;
	size_t most = 0;

	cupti.request(&buffer, ret_bytes, &most);
	if (!buffer && cupti.version < REFUSAL_VERSION)
		abort();
	return buffer;
}

static void keep_buffers(void)
{
	size_t bytes;

	for (uint64_t i = 0; i < cupti.keeps_nr && !cupti.has_kept; i++)
		(void)ask_for_buffer(&bytes);
	cupti.has_kept = true;
}

static void write_record(const void *record, size_t known_bytes)
{
	size_t bytes = record_bytes(((const struct cupti_record *)record)->kind);

	if (cupti.buffer && cupti.used + bytes > cupti.bytes)
		give_back();
	if (!cupti.buffer) {
		cupti.buffer = ask_for_buffer(&cupti.bytes);
		if (!cupti.buffer) {
			cupti.dropped++;
			return;
		}
		if (cupti.bytes > cupti.buffer_bytes)
			cupti.bytes = cupti.buffer_bytes;
		cupti.used = 0;
	}
	/* What a reader must not look at is not zero. */
	memset(cupti.buffer + cupti.used, 0xa5, bytes);
	memcpy(cupti.buffer + cupti.used, record, known_bytes < bytes ? known_bytes : bytes);
	cupti.used += bytes;
}

static void spoil(const struct fake_event *e, uint64_t *start, uint64_t *end)
{
	*start = fake_gpu_cupti_ns(e->start_ns);
	*end = fake_gpu_cupti_ns(e->end_ns);
	if (e->fault == FAKE_ZERO)
		*start = 0;
	if (e->fault == FAKE_BACKWARDS)
		*end = *start - 1;
}

static void write_kernel(const struct fake_event *e, uint64_t start, uint64_t end)
{
	struct cupti_kernel k = {
		.kind = CUPTI_KERNEL,
		.registers_per_thread = 32,
		.start = start,
		.end = end,
		.device = e->device,
		.context = 1 + e->device,
		.stream = e->stream,
		.graph = e->graph,
		.graph_node = e->graph_node,
		.dynamic_shared_bytes = (int32_t)e->shared_bytes,
		.correlation_id = e->correlation_id,
		.name = e->name,
	};

	for (int i = 0; i < 3; i++) {
		k.grid[i] = (int32_t)e->grid[i];
		k.block[i] = (int32_t)e->block[i];
	}
	write_record(&k, sizeof(k));
}

static void write_copy(const struct fake_event *e, uint64_t start, uint64_t end)
{
	struct cupti_copy c = {
		.kind = CUPTI_MEMCPY,
		.copy_kind = e->copy_kind,
		.src_kind = e->copy_kind == FROM_HOST ? MEMORY_PAGEABLE : MEMORY_DEVICE,
		.dst_kind = e->copy_kind == TO_HOST ? MEMORY_PAGEABLE : MEMORY_DEVICE,
		.bytes = e->bytes,
		.start = start,
		.end = end,
		.device = e->device,
		.context = 1 + e->device,
		.stream = e->stream,
		.graph = e->graph,
		.graph_node = e->graph_node,
		.correlation_id = e->correlation_id,
	};

	write_record(&c, sizeof(c));
}

static void write_peer_copy(const struct fake_event *e, uint64_t start, uint64_t end)
{
	struct cupti_peer_copy c = {
		.kind = CUPTI_PEER_COPY,
		.copy_kind = PEER_TO_PEER,
		.src_kind = MEMORY_DEVICE,
		.dst_kind = MEMORY_DEVICE,
		.bytes = e->bytes,
		.start = start,
		.end = end,
		.device = e->device,
		.context = 1 + e->device,
		.stream = e->stream,
		.src_device = e->device,
		.src_context = 1 + e->device,
		.dst_device = e->peer_device - 1,
		.dst_context = e->peer_device,
		.correlation_id = e->correlation_id,
	};

	write_record(&c, sizeof(c));
}

static void write_set(const struct fake_event *e, uint64_t start, uint64_t end)
{
	struct cupti_set s = {
		.kind = CUPTI_MEMSET,
		.bytes = e->bytes,
		.start = start,
		.end = end,
		.device = e->device,
		.context = 1 + e->device,
		.stream = e->stream,
		.graph = e->graph,
		.graph_node = e->graph_node,
		.correlation_id = e->correlation_id,
		.memory_kind = MEMORY_DEVICE,
	};

	write_record(&s, sizeof(s));
}

static void write_call(const struct fake_event *e, uint64_t start, uint64_t end)
{
	struct cupti_api_call a = {
		.kind = e->driver ? CUPTI_DRIVER : CUPTI_RUNTIME,
		.cbid = e->cbid,
		.start = start,
		.end = end,
		.process = (uint32_t)getpid(),
		.thread = cupti.thread_ids == CUPTI_THREAD_SYSTEM ? e->tid : e->pthread_id,
		.correlation_id = e->correlation_id,
	};

	cupti.names[e->driver ? CUPTI_DOMAIN_DRIVER : CUPTI_DOMAIN_RUNTIME][e->cbid % CBIDS] =
		e->name;
	if (!cupti.silent[e->driver][e->cbid % CBIDS])
		write_record(&a, sizeof(a));
}

static void write_sync(const struct fake_event *e, uint64_t start, uint64_t end)
{
	struct cupti_sync s = {
		.kind = CUPTI_SYNC,
		.type = e->sync,
		.start = start,
		.end = end,
		.correlation_id = e->correlation_id,
		.context = 1 + e->device,
		.stream = e->stream,
		.event = e->event,
		.record_id = e->event == CUPTI_NO_VALUE ? CUPTI_NO_VALUE : e->record_id,
	};

	write_record(&s, sizeof(s));
}

static void write_cuda_event(const struct fake_event *e, uint64_t start, uint64_t end)
{
	struct cupti_event c = {
		.kind = CUPTI_EVENT,
		.correlation_id = e->correlation_id,
		.context = 1 + e->device,
		.stream = e->stream,
		.event = e->event,
		.device = e->device,
		.device_time = cupti.times_events ? end : 0,
		.record_id = e->record_id,
	};

	write_record(&c, sizeof(c));
}

static void write_event(const struct fake_event *e)
{
	static void (*const writers[])(const struct fake_event *e, uint64_t start, uint64_t end) = {
		[FAKE_KERNEL] = write_kernel, [FAKE_COPY] = write_copy,
		[FAKE_SET] = write_set,	      [FAKE_CALL] = write_call,
		[FAKE_SYNC] = write_sync,     [FAKE_EVENT] = write_cuda_event,
	};
	uint64_t start, end;

	if (e->fault == FAKE_DROP) {
		cupti.dropped++;
		return;
	}
	spoil(e, &start, &end);
	if (e->peer_device) {
		write_peer_copy(e, start, end);
		return;
	}
	writers[e->kind](e, start, end);
}

static void write_overhead(uint32_t what, uint32_t thread, uint64_t start_ns)
{
	struct cupti_overhead o = {
		.kind = CUPTI_OVERHEAD,
		.what = what,
		.object_kind = CUPTI_OBJECT_THREAD,
		.process = (uint32_t)getpid(),
		.thread = thread,
		.start = fake_gpu_cupti_ns(start_ns),
		.end = fake_gpu_cupti_ns(fake_gpu_now_ns()),
	};

	fake_gpu_count("overhead");
	write_record(&o, sizeof(o));
}

/* What the last flush cost its thread and, as if it had waited for that, the program's first. */
static void write_overhead_of_flush(uint64_t start_ns)
{
	write_overhead(BUFFER_FLUSH, (uint32_t)syscall(SYS_gettid), start_ns);
	write_overhead(INSTRUMENTATION, (uint32_t)getpid(), start_ns);
}

static void deliver(bool flush)
{
	uint64_t start_ns = fake_gpu_now_ns();

	if (!cupti.request)
		return;
	pthread_mutex_lock(&cupti.delivery);
	fake_gpu_deliver(flush, write_event);
	if (flush && cupti.emits_overhead && cupti.kinds[CUPTI_OVERHEAD])
		write_overhead_of_flush(start_ns);
	if (flush)
		give_back();
	pthread_mutex_unlock(&cupti.delivery);
}

/* ---- calls ---- */

static void on_exit_of_call(bool driver, uint32_t cbid)
{
	uint32_t domain = driver ? CUPTI_DOMAIN_DRIVER : CUPTI_DOMAIN_RUNTIME;
	struct cupti_callback_data data = {.site = CUPTI_SITE_EXIT,
					   .function_name = cupti.names[domain][cbid % CBIDS]};

	in_callback = true;
	if (__atomic_load_n(&cupti.domains, __ATOMIC_ACQUIRE) >> domain & 1)
		cupti.callback(cupti.callback_arg, domain, cbid, &data);
	in_callback = false;
	if (fake_gpu_pending() > MANY)
		deliver(false);
}

static void retrace(void)
{
	static const struct fake_hooks hooks = {on_exit_of_call};
	bool events = cupti.kinds[CUPTI_EVENT] ||
		      (cupti.version < EVENT_VERSION && cupti.kinds[CUPTI_SYNC]);
	uint32_t mask = (uint32_t)cupti.kinds[CUPTI_KERNEL] << FAKE_KERNEL |
			(uint32_t)cupti.kinds[CUPTI_MEMCPY] << FAKE_COPY |
			(uint32_t)cupti.kinds[CUPTI_MEMSET] << FAKE_SET |
			(uint32_t)cupti.kinds[CUPTI_RUNTIME] << FAKE_CALL |
			(uint32_t)cupti.kinds[CUPTI_SYNC] << FAKE_SYNC |
			(uint32_t)events << FAKE_EVENT;

	fake_gpu_trace(mask, mask || cupti.domains ? &hooks : NULL);
}

int cuptiGetVersion(uint32_t *ret_version)
{
	*ret_version = cupti.version;
	return CUPTI_OK;
}

int cuptiGetTimestamp(uint64_t *ret_ns)
{
	*ret_ns = fake_gpu_cupti_ns(fake_gpu_now_ns());
	return CUPTI_OK;
}

int cuptiSubscribe(void **ret_subscriber, cupti_callback_fn fn, void *arg)
{
	if (cupti.subscribed || fake_gpu_is_busy()) {
		fake_gpu_count("turned away");
		return CUPTI_SECOND_SUBSCRIBER;
	}
	/* The real one waits for a thread that waits for the GPU. */
	(void)usleep(1000 * cupti.slow_ms);
	cupti.slow_ms = 0;
	fake_gpu_count("subscribed");
	cupti.subscribed = true;
	cupti.has_kept = false;
	cupti.enabled = false;
	cupti.graphs_max = cupti.version < THERE_SAFE ? 0 : fake_gpu_counted("graphs");
	if (cupti.version >= MEANWHILE_SAFE)
		cupti.graphs_max = ~0U;
	cupti.callback = fn;
	cupti.callback_arg = arg;
	*ret_subscriber = &cupti;
	return CUPTI_OK;
}

int cuptiUnsubscribe(void *subscriber)
{
	if (!cupti.subscribed || subscriber != &cupti)
		return CUPTI_PARAMETER;
	fake_gpu_count_beside();
	fake_gpu_count("unsubscribed");
	cupti.subscribed = false;
	__atomic_store_n(&cupti.domains, 0, __ATOMIC_RELEASE);
	retrace();
	return CUPTI_OK;
}

int cuptiEnableDomain(uint32_t enable, void *subscriber, uint32_t domain)
{
	uint32_t bit = 1U << domain;

	if (!cupti.subscribed || subscriber != &cupti)
		return CUPTI_PARAMETER;
	__atomic_store_n(&cupti.domains, enable ? cupti.domains | bit : cupti.domains & ~bit,
			 __ATOMIC_RELEASE);
	retrace();
	return CUPTI_OK;
}

int cuptiActivityRegisterCallbacks(cupti_request_fn request, cupti_complete_fn complete)
{
	cupti.complete = complete;
	cupti.request = request;
	return CUPTI_OK;
}

static int set_kind(uint32_t kind, bool on)
{
	if (kind >= KINDS)
		return CUPTI_PARAMETER;
	if (on)
		keep_buffers();
	cupti.kinds[kind] = on;
	retrace();
	return CUPTI_OK;
}

int cuptiActivityEnable(uint32_t kind)
{
	int result = set_kind(kind, true);

	if (!cupti.enabled)
		fake_gpu_count_beside();
	cupti.enabled = true;
	fake_gpu_count("enabled");
	return result;
}

int cuptiActivityDisable(uint32_t kind)
{
	fake_gpu_count("disabled");
	(void)usleep(1000 * cupti.off_ms);
	cupti.off_ms = 0;
	return set_kind(kind, false);
}

int cuptiActivityFlushAll(uint32_t flags)
{
	fake_gpu_count(flags & CUPTI_FLUSH_FORCED ? "forced" : "flushed");
	deliver(true);
	return CUPTI_OK;
}

int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid_bytes, void **record)
{
	uint8_t *next = *record;

	next = next ? next + record_bytes(((struct cupti_record *)*record)->kind) : buffer;
	if (next >= buffer + valid_bytes)
		return CUPTI_LIMIT_REACHED;
	*record = next;
	return CUPTI_OK;
}

int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *ret_nr)
{
	pthread_mutex_lock(&cupti.delivery);
	*ret_nr = cupti.dropped;
	cupti.dropped = 0;
	pthread_mutex_unlock(&cupti.delivery);
	return CUPTI_OK;
}

int cuptiGetCallbackName(uint32_t domain, uint32_t cbid, const char **ret_name)
{
	if (domain > CUPTI_DOMAIN_RUNTIME || cbid >= CBIDS || !cupti.names[domain][cbid])
		return CUPTI_PARAMETER;
	*ret_name = cupti.names[domain][cbid];
	return CUPTI_OK;
}

int cuptiGetResultString(int result, const char **ret_text)
{
	*ret_text = "an error of the stand-in";
	return CUPTI_OK;
}

int cuptiGetThreadIdType(uint32_t *ret_type)
{
	*ret_type = cupti.thread_ids;
	return CUPTI_OK;
}

int cuptiSetThreadIdType(uint32_t type)
{
	cupti.thread_ids = type;
	return CUPTI_OK;
}

int cuptiFinalize(void)
{
	if (cupti.subscribed || fake_gpu_setting("FAKE_CUPTI_STAYS", 0))
		return CUPTI_PARAMETER;
	if (!in_callback || fake_gpu_counted("graphs") > cupti.graphs_max)
		abort();
	fake_gpu_count("finalized");
	fake_gpu_count_beside();
	/* As long as another thread is in a call. */
	(void)usleep(1000 * cupti.end_ms);
	if (cupti.emits_last) {
		write_overhead(BUFFER_FLUSH, (uint32_t)syscall(SYS_gettid), fake_gpu_now_ns());
		give_back();
	}
	memset(cupti.kinds, 0, sizeof(cupti.kinds));
	cupti.request = NULL;
	retrace();
	return CUPTI_OK;
}

static int set_silent(bool driver, uint32_t cbid, bool silent)
{
	if (cupti.version < QUIET_VERSION)
		return CUPTI_UNSUPPORTED;
	cupti.silent[driver][cbid % CBIDS] = silent;
	return CUPTI_OK;
}

int cuptiActivityEnableRuntimeApi(uint32_t cbid, uint8_t enable)
{
	return set_silent(false, cbid, !enable);
}

int cuptiActivityEnableDriverApi(uint32_t cbid, uint8_t enable)
{
	return set_silent(true, cbid, !enable);
}

int cuptiActivityEnableCudaEventDeviceTimestamps(uint8_t enable)
{
	cupti.times_events = enable;
	return CUPTI_OK;
}
