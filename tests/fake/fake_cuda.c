/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The stand-in for libcuda.so.1: the simulated GPU, its clock and its truth, and the few driver
 * calls that the tests need. The work of one stream runs in order, several streams run at once, and
 * each kind of work takes a fixed time.
 */
#include "fake/fake_runtime.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define STREAMS	      64
#define COUNTERS      16
#define LAUNCH_NS     2000
#define KERNEL_NS     1000
#define BLOCK_NS      10
#define BYTES_PER_NS  10
#define DRIVER	      12080
#define NOT_READY     3	  /* CUDA_ERROR_NOT_INITIALIZED */
#define NO_DEVICE     101 /* CUDA_ERROR_INVALID_DEVICE */
#define DEFAULT_DRIFT 20
#define DEFAULT_BASE  1700000000000000000ULL

/* Callback ids of the driver's interface. */
enum cbid {
	CBID_VERSION = 2,
	CBID_DEVICE = 3,
	CBID_COUNT = 4,
	CBID_NAME = 5,
	CBID_ATTRIBUTE = 9,
	CBID_MEMORY = 259,
};

const char fake_gpu_marker[] = "gpuprof test stand-in, no GPU";

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct {
	struct fake_event *events;
	size_t nr, capacity, undelivered_from;
	uint64_t stream_end_ns[STREAMS];
	uint32_t next_correlation, traced, traced_nr, late;
	uint32_t zero, backwards, drop; /* every how many */
	const struct fake_hooks *hooks;
	bool ready, busy;
	bool settles;
	uint64_t begin_ns, jump_at_ns, settled_ns, records_nr;
	int64_t jump_ns;
	struct {
		const char *what;
		unsigned nr;
	} counters[COUNTERS];
} gpu;

uint64_t fake_gpu_now_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

uint64_t fake_gpu_setting(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 10) : otherwise;
}

static uint32_t every(const char *what)
{
	const char *text = getenv("FAKE_CUPTI_FAULT");
	const char *at = text ? strstr(text, what) : NULL;

	return at ? (uint32_t)strtoul(at + strlen(what), NULL, 10) : 0;
}

static void *wait_for_ever(void *arg)
{
	for (;;)
		(void)pause();
	return NULL;
}

__attribute__((constructor)) static void begin(void)
{
	pthread_t thread;

	if (fake_gpu_setting("FAKE_CUDA_THREAD", 0) &&
	    pthread_create(&thread, NULL, wait_for_ever, NULL))
		abort();
	gpu.begin_ns = fake_gpu_now_ns();
	gpu.next_correlation = (uint32_t)fake_gpu_setting("FAKE_CUDA_CORRELATION", 1);
	gpu.late = (uint32_t)fake_gpu_setting("FAKE_CUPTI_LATE", 0);
	gpu.settles = fake_gpu_setting("FAKE_CUPTI_SETTLE", 0);
	gpu.zero = every("zero=");
	gpu.backwards = every("backwards=");
	gpu.drop = every("drop=");
}

/* The caller holds the lock, or nobody sets the clock. */
static uint64_t cupti_ns(uint64_t monotonic_ns)
{
	uint64_t passed_ns = monotonic_ns - gpu.begin_ns;
	bool settled = gpu.settled_ns && monotonic_ns >= gpu.settled_ns;
	uint64_t ns = fake_gpu_setting("FAKE_CUPTI_OFFSET_NS", DEFAULT_BASE) + passed_ns;

	if (gpu.settles && !settled)
		return monotonic_ns;
	ns += passed_ns / 1000 * fake_gpu_setting("FAKE_CUPTI_DRIFT_PPM", DEFAULT_DRIFT) / 1000;
	return gpu.jump_at_ns && monotonic_ns >= gpu.jump_at_ns ? ns + (uint64_t)gpu.jump_ns : ns;
}

uint64_t fake_gpu_cupti_ns(uint64_t monotonic_ns)
{
	uint64_t ns;

	pthread_mutex_lock(&lock);
	ns = cupti_ns(monotonic_ns);
	pthread_mutex_unlock(&lock);
	return ns;
}

static __thread uint32_t current_device;

uint32_t fake_gpu_device(void)
{
	return current_device;
}

void fake_gpu_set_device(uint32_t device)
{
	current_device = device;
}

static struct fake_event *add(const struct fake_event *event)
{
	struct fake_event *e;

	if (gpu.nr == gpu.capacity) {
		gpu.capacity = gpu.capacity ? 2 * gpu.capacity : 4096;
		gpu.events = realloc(gpu.events, gpu.capacity * sizeof(*gpu.events));
		if (!gpu.events)
			abort();
	}
	e = &gpu.events[gpu.nr++];
	*e = *event;
	e->device = fake_gpu_device();
	e->tid = (uint32_t)syscall(SYS_gettid);
	e->pthread_id = (uint32_t)(uintptr_t)pthread_self();
	e->traced = gpu.traced >> e->kind & 1;
	e->flushes_left = gpu.late;
	return e;
}

static bool is_nth(uint32_t every_nr)
{
	return every_nr && gpu.traced_nr % every_nr == 0;
}

static enum fake_fault next_fault(void)
{
	gpu.traced_nr++;
	if (is_nth(gpu.zero))
		return FAKE_ZERO;
	if (is_nth(gpu.backwards))
		return FAKE_BACKWARDS;
	return is_nth(gpu.drop) ? FAKE_DROP : FAKE_FINE;
}

static uint64_t duration_ns(const struct fake_event *e)
{
	if (e->kind == FAKE_KERNEL)
		return KERNEL_NS + (uint64_t)e->grid[0] * BLOCK_NS;
	return KERNEL_NS + e->bytes / BYTES_PER_NS;
}

/* One within another counts once. */
static __thread unsigned calls_depth;
static unsigned calling_nr; /* threads */

void fake_gpu_count_beside(void)
{
	bool beside = __atomic_load_n(&calling_nr, __ATOMIC_ACQUIRE) > (calls_depth != 0);

	fake_gpu_count(beside ? "beside calls" : "alone");
}

uint32_t fake_gpu_begin(uint64_t *ret_start_ns)
{
	uint32_t id;

	if (!calls_depth++)
		(void)__atomic_add_fetch(&calling_nr, 1, __ATOMIC_ACQ_REL);
	(void)cuInit(0);
	pthread_mutex_lock(&lock);
	id = gpu.next_correlation++;
	if (!id)
		id = gpu.next_correlation++;
	pthread_mutex_unlock(&lock);
	*ret_start_ns = fake_gpu_now_ns();
	return id;
}

void fake_gpu_end(uint32_t correlation_id, uint64_t start_ns, const char *name, bool driver,
		  uint32_t cbid)
{
	struct fake_event call = {
		.kind = FAKE_CALL,
		.driver = driver,
		.correlation_id = correlation_id,
		.cbid = cbid,
		.start_ns = start_ns,
		.end_ns = fake_gpu_now_ns(),
		.name = name,
	};
	const struct fake_hooks *hooks;

	pthread_mutex_lock(&lock);
	(void)add(&call);
	hooks = gpu.hooks;
	pthread_mutex_unlock(&lock);
	if (hooks)
		hooks->call_exit(driver, cbid);
	if (!--calls_depth)
		(void)__atomic_sub_fetch(&calling_nr, 1, __ATOMIC_ACQ_REL);
}

void fake_gpu_submit(const struct fake_event *work)
{
	struct fake_event *e;
	uint64_t *stream_end_ns;

	pthread_mutex_lock(&lock);
	if (!gpu.settled_ns)
		gpu.settled_ns = fake_gpu_now_ns();
	e = add(work);
	stream_end_ns = &gpu.stream_end_ns[e->stream % STREAMS];
	e->start_ns = fake_gpu_now_ns() + LAUNCH_NS;
	if (e->start_ns < *stream_end_ns)
		e->start_ns = *stream_end_ns;
	e->end_ns = *stream_end_ns = e->start_ns + duration_ns(e);
	if (e->traced)
		e->fault = next_fault();
	pthread_mutex_unlock(&lock);
}

/* The caller holds the lock. */
static uint64_t end_of(uint32_t stream)
{
	uint64_t end_ns = 0;

	if (stream != UINT32_MAX)
		return gpu.stream_end_ns[stream % STREAMS];
	for (uint32_t i = 0; i < STREAMS; i++)
		if (gpu.stream_end_ns[i] > end_ns)
			end_ns = gpu.stream_end_ns[i];
	return end_ns;
}

static void add_sync(const struct fake_event *sync, uint64_t start_ns)
{
	struct fake_event done = *sync;

	done.kind = FAKE_SYNC;
	done.start_ns = start_ns;
	done.end_ns = fake_gpu_now_ns();
	pthread_mutex_lock(&lock);
	(void)add(&done);
	pthread_mutex_unlock(&lock);
}

void fake_gpu_wait(const struct fake_event *sync)
{
	uint64_t start_ns = fake_gpu_now_ns(), until_ns = sync->end_ns;
	struct timespec ts;

	pthread_mutex_lock(&lock);
	if (!until_ns)
		until_ns = end_of(sync->stream);
	pthread_mutex_unlock(&lock);
	ts.tv_sec = (time_t)(until_ns / 1000000000ULL);
	ts.tv_nsec = (long)(until_ns % 1000000000ULL);
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL))
		;
	add_sync(sync, start_ns);
}

void fake_gpu_hold(const struct fake_event *sync)
{
	uint64_t start_ns = fake_gpu_now_ns();
	uint64_t *end_ns = &gpu.stream_end_ns[sync->stream % STREAMS];

	pthread_mutex_lock(&lock);
	if (*end_ns < sync->end_ns)
		*end_ns = sync->end_ns;
	pthread_mutex_unlock(&lock);
	add_sync(sync, start_ns);
}

uint64_t fake_gpu_record(struct fake_event *event)
{
	pthread_mutex_lock(&lock);
	event->kind = FAKE_EVENT;
	event->record_id = ++gpu.records_nr;
	event->start_ns = fake_gpu_now_ns();
	if (event->start_ns < end_of(event->stream))
		event->start_ns = end_of(event->stream);
	event->end_ns = event->start_ns;
	(void)add(event);
	pthread_mutex_unlock(&lock);
	return event->end_ns;
}

bool fake_gpu_works(uint32_t stream)
{
	uint64_t end_ns;

	pthread_mutex_lock(&lock);
	end_ns = end_of(stream);
	pthread_mutex_unlock(&lock);
	return end_ns > fake_gpu_now_ns();
}

/* ---- for libcupti ---- */

void fake_gpu_trace(uint32_t mask, const struct fake_hooks *hooks)
{
	pthread_mutex_lock(&lock);
	gpu.traced = mask;
	gpu.hooks = hooks;
	pthread_mutex_unlock(&lock);
}

static bool is_due(struct fake_event *e, uint64_t now_ns, bool flush)
{
	if (!e->traced || e->delivered || e->end_ns > now_ns)
		return false;
	if (!e->flushes_left)
		return true;
	e->flushes_left -= flush;
	return false;
}

/* fn is called without the lock: it may call into the collector. */
void fake_gpu_deliver(bool flush, void (*fn)(const struct fake_event *e))
{
	uint64_t now_ns = fake_gpu_now_ns();
	size_t nr;

	pthread_mutex_lock(&lock);
	nr = gpu.nr;
	for (uint32_t stream = STREAMS; stream-- > 0;) {
		for (size_t i = gpu.undelivered_from; i < nr; i++) {
			struct fake_event e;

			if (gpu.events[i].stream % STREAMS != stream ||
			    !is_due(&gpu.events[i], now_ns, flush))
				continue;
			gpu.events[i].delivered = true;
			e = gpu.events[i];
			pthread_mutex_unlock(&lock);
			fn(&e);
			pthread_mutex_lock(&lock);
		}
	}
	while (gpu.undelivered_from < gpu.nr && (gpu.events[gpu.undelivered_from].delivered ||
						 !gpu.events[gpu.undelivered_from].traced))
		gpu.undelivered_from++;
	pthread_mutex_unlock(&lock);
}

size_t fake_gpu_pending(void)
{
	size_t nr;

	pthread_mutex_lock(&lock);
	nr = gpu.nr - gpu.undelivered_from;
	pthread_mutex_unlock(&lock);
	return nr;
}

bool fake_gpu_is_busy(void)
{
	return __atomic_load_n(&gpu.busy, __ATOMIC_RELAXED);
}

/* ---- for programs ---- */

void fake_gpu_set_busy(int busy)
{
	__atomic_store_n(&gpu.busy, busy != 0, __ATOMIC_RELAXED);
}

void fake_gpu_jump(int64_t ns)
{
	pthread_mutex_lock(&lock);
	gpu.jump_at_ns = fake_gpu_now_ns();
	gpu.jump_ns = ns;
	pthread_mutex_unlock(&lock);
}

int fake_gpu_truth(const char *path)
{
	static const char *const kinds[] = {"kernel", "copy", "set", "call", "sync", "event"};
	static const char *const faults[] = {"fine", "zero", "backwards", "drop"};
	FILE *f = fopen(path, "we");
	int err;

	if (!f)
		return -1;
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < gpu.nr; i++) {
		const struct fake_event *e = &gpu.events[i];

		(void)fprintf(f,
			      "%s\t%s\t%d\t%d\t%u\t%u\t%llu\t%llu\t%u\t%llu\t%u,%u,%u\t%u,%u,%u"
			      "\t%u\t%u,%u\t%s\n",
			      kinds[e->kind], faults[e->fault], e->traced, e->driver,
			      e->correlation_id, e->tid, (unsigned long long)e->start_ns,
			      (unsigned long long)e->end_ns, e->stream,
			      (unsigned long long)e->bytes, e->grid[0], e->grid[1], e->grid[2],
			      e->block[0], e->block[1], e->block[2], e->device, e->graph,
			      e->graph_node, e->name ? e->name : "");
	}
	err = ferror(f);
	pthread_mutex_unlock(&lock);
	return fclose(f) || err ? -1 : 0;
}

void fake_gpu_count(const char *what)
{
	int i = 0;

	pthread_mutex_lock(&lock);
	while (i < COUNTERS - 1 && gpu.counters[i].what && strcmp(gpu.counters[i].what, what))
		i++;
	gpu.counters[i].what = what;
	gpu.counters[i].nr++;
	pthread_mutex_unlock(&lock);
}

unsigned fake_gpu_counted(const char *what)
{
	unsigned nr = 0;

	pthread_mutex_lock(&lock);
	for (int i = 0; i < COUNTERS && gpu.counters[i].what; i++)
		if (!strcmp(gpu.counters[i].what, what))
			nr = gpu.counters[i].nr;
	pthread_mutex_unlock(&lock);
	return nr;
}

/* ---- the driver's interface ---- */

/* As the driver does: libraries that want to be told of CUDA are named in the environment. */
static void inject(void)
{
	const char *path = getenv("CUDA_INJECTION64_PATH");
	void *handle = path ? dlopen(path, RTLD_LAZY | RTLD_LOCAL) : NULL;
	int (*initialize)(void) = NULL;

	if (handle)
		*(void **)&initialize = dlsym(handle, "InitializeInjection");
	if (initialize)
		(void)initialize();
}

static void start(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, inject);
}

int cuInit(unsigned flags)
{
	start();
	pthread_mutex_lock(&lock);
	gpu.ready = true;
	pthread_mutex_unlock(&lock);
	return 0;
}

/* A question is a call as any other, by what CUPTI tells, once CUDA is ready. */
static void emit_question(const char *name, uint32_t cbid)
{
	uint64_t start_ns;
	uint32_t id;
	bool ready;

	pthread_mutex_lock(&lock);
	ready = gpu.ready;
	pthread_mutex_unlock(&lock);
	if (!ready)
		return;
	id = fake_gpu_begin(&start_ns);
	fake_gpu_end(id, start_ns, name, true, cbid);
}

int cuDriverGetVersion(int *ret_version)
{
	emit_question("cuDriverGetVersion", CBID_VERSION);
	*ret_version = (int)fake_gpu_setting("FAKE_CUDA_DRIVER", DRIVER);
	return 0;
}

int cuDeviceGetCount(int *ret_nr)
{
	bool ready;

	emit_question("cuDeviceGetCount", CBID_COUNT);
	pthread_mutex_lock(&lock);
	ready = gpu.ready;
	pthread_mutex_unlock(&lock);
	*ret_nr = ready ? (int)fake_gpu_setting("FAKE_CUDA_DEVICES", 1) : 0;
	return ready ? 0 : NOT_READY;
}

int cuDeviceGet(int *ret_device, int ordinal)
{
	int nr = (int)fake_gpu_setting("FAKE_CUDA_DEVICES", 1);

	emit_question("cuDeviceGet", CBID_DEVICE);
	if (ordinal < 0 || ordinal >= nr)
		return NO_DEVICE;
	*ret_device = ordinal;
	return 0;
}

int cuDeviceGetName(char *ret_name, int bytes, int device)
{
	emit_question("cuDeviceGetName", CBID_NAME);
	(void)snprintf(ret_name, (size_t)bytes, "Simulated GPU %d", device);
	return 0;
}

int cuDeviceTotalMem_v2(size_t *ret_bytes, int device)
{
	emit_question("cuDeviceTotalMem_v2", CBID_MEMORY);
	*ret_bytes = 16UL << 30;
	return 0;
}

/* Those of an A100, by CUdevice_attribute. */
int cuDeviceGetAttribute(int *ret_value, int attribute, int device)
{
	static const int values[][2] = {
		{1, 1024},   {8, 49152},   {10, 32},  {12, 65536}, {13, 1410000},
		{16, 108},   {39, 2048},   {75, 8},   {76, 0},	   {81, 167936},
		{82, 65536}, {97, 166912}, {106, 32}, {111, 1024},
	};

	emit_question("cuDeviceGetAttribute", CBID_ATTRIBUTE);
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		if (values[i][0] == attribute) {
			*ret_value = values[i][1];
			return 0;
		}
	return NO_DEVICE;
}
