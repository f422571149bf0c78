/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The stand-in for libcudart.so.12: the runtime calls that the tests make, with their real names
 * and arguments. A kernel's function is a C function with a symbol, or a string that stays valid:
 * its name. A stream is its number. Copies do not touch memory. What is launched on a stream that
 * is being captured becomes a graph.
 */
#include "fake/fake_runtime.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define DEFAULT_STREAM 7
#define FIRST_STREAM   13
#define NODES_MAX      16
#define VERSION	       12060 /* of CUDA 12.6 */
#define PITCH	       512
#define NOT_READY      600 /* cudaErrorNotReady */

/* CUpti_ActivitySynchronizationType. */
enum sync { SYNC_EVENT = 1, SYNC_STREAM_WAIT = 2, SYNC_STREAM = 3, SYNC_CONTEXT = 4 };

/* Callback ids of the runtime's interface. */
enum cbid {
	CBID_VERSION = 2,
	CBID_DEVICE_COUNT = 3,
	CBID_SET_DEVICE = 16,
	CBID_GET_DEVICE = 17,
	CBID_MALLOC = 20,
	CBID_MALLOC_PITCH = 21,
	CBID_FREE = 22,
	CBID_MALLOC_HOST = 25,
	CBID_FREE_HOST = 26,
	CBID_COPY = 41,
	CBID_COPY_2D = 44,
	CBID_SET = 51,
	CBID_STREAM_CREATE = 129,
	CBID_STREAM_SYNC = 131,
	CBID_STREAM_QUERY = 132,
	CBID_EVENT_CREATE = 133,
	CBID_EVENT_RECORD = 135,
	CBID_EVENT_SYNC = 137,
	CBID_STREAM_WAIT = 147,
	CBID_COPY_PEER = 161,
	CBID_DEVICE_SYNC = 165,
	CBID_MALLOC_MANAGED = 206,
	CBID_LAUNCH = 211,
	CBID_GRAPH_LAUNCH = 311,
	CBID_BEGIN_CAPTURE = 315,
	CBID_END_CAPTURE = 319,
	CBID_MALLOC_ASYNC = 373,
	CBID_FREE_ASYNC = 375,
	CBID_LAUNCH_EX = 430,
	CBID_INSTANTIATE = 443,
};

struct graph {
	uint32_t id, nr;
	struct fake_event nodes[NODES_MAX];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread struct graph *capturing; /* one at a time */
static __thread uint32_t capturing_stream;
static uint32_t graphs_nr, nodes_nr;

static uint32_t number_of(void *stream)
{
	return stream ? (uint32_t)(uintptr_t)stream : DEFAULT_STREAM;
}

/* A call that waits, or has a stream do so. */
static int wait_in(struct fake_event sync, void (*wait)(const struct fake_event *sync),
		   const char *name, uint32_t cbid)
{
	uint64_t start_ns;

	sync.correlation_id = fake_gpu_begin(&start_ns);
	wait(&sync);
	fake_gpu_end(sync.correlation_id, start_ns, name, false, cbid);
	return 0;
}

/* A call that does nothing. */
static int note(const char *name, uint32_t cbid)
{
	uint64_t start_ns;
	uint32_t id = fake_gpu_begin(&start_ns);

	fake_gpu_end(id, start_ns, name, false, cbid);
	return 0;
}

/* ---- devices, streams ---- */

int cudaRuntimeGetVersion(int *ret_version)
{
	*ret_version = VERSION;
	return note("cudaRuntimeGetVersion_v3020", CBID_VERSION);
}

int cudaGetDeviceCount(int *ret_nr)
{
	*ret_nr = (int)fake_gpu_setting("FAKE_CUDA_DEVICES", 1);
	return note("cudaGetDeviceCount_v3020", CBID_DEVICE_COUNT);
}

int cudaGetDevice(int *ret_device)
{
	*ret_device = (int)fake_gpu_device();
	return note("cudaGetDevice_v3020", CBID_GET_DEVICE);
}

int cudaSetDevice(int device)
{
	fake_gpu_set_device((uint32_t)device);
	return note("cudaSetDevice_v3020", CBID_SET_DEVICE);
}

int cudaStreamCreate(void **ret_stream)
{
	static uint32_t next = FIRST_STREAM;

	*ret_stream = (void *)(uintptr_t)__atomic_fetch_add(&next, 1, __ATOMIC_RELAXED);
	return note("cudaStreamCreate_v3020", CBID_STREAM_CREATE);
}

int cudaStreamSynchronize(void *stream)
{
	struct fake_event sync = {
		.sync = SYNC_STREAM, .stream = number_of(stream), .event = UINT32_MAX};

	return wait_in(sync, fake_gpu_wait, "cudaStreamSynchronize_v3020", CBID_STREAM_SYNC);
}

int cudaDeviceSynchronize(void)
{
	struct fake_event sync = {.sync = SYNC_CONTEXT, .stream = UINT32_MAX, .event = UINT32_MAX};

	return wait_in(sync, fake_gpu_wait, "cudaDeviceSynchronize_v3020", CBID_DEVICE_SYNC);
}

int cudaStreamQuery(void *stream)
{
	(void)note("cudaStreamQuery_v3020", CBID_STREAM_QUERY);
	return fake_gpu_works(number_of(stream)) ? NOT_READY : 0;
}

/* ---- events ---- */

int cudaEventCreate(struct fake_cuda_event **ret_event)
{
	static uint32_t last;

	*ret_event = calloc(1, sizeof(**ret_event));
	if (!*ret_event)
		abort();
	(*ret_event)->id = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
	return note("cudaEventCreate_v3020", CBID_EVENT_CREATE);
}

int cudaEventRecord(struct fake_cuda_event *event, void *stream)
{
	struct fake_event record = {.stream = number_of(stream), .event = event->id};
	uint64_t start_ns;

	record.correlation_id = fake_gpu_begin(&start_ns);
	event->due_ns = fake_gpu_record(&record);
	event->record_id = record.record_id;
	fake_gpu_end(record.correlation_id, start_ns, "cudaEventRecord_v3020", false,
		     CBID_EVENT_RECORD);
	return 0;
}

static struct fake_event wait_for(const struct fake_cuda_event *event, uint32_t sync,
				  uint32_t stream)
{
	return (struct fake_event){
		.sync = sync,
		.stream = stream,
		.event = event->id,
		.record_id = event->record_id,
		.end_ns = event->due_ns,
	};
}

int cudaStreamWaitEvent(void *stream, struct fake_cuda_event *event, unsigned flags)
{
	struct fake_event sync = wait_for(event, SYNC_STREAM_WAIT, number_of(stream));

	return wait_in(sync, fake_gpu_hold, "cudaStreamWaitEvent_v3020", CBID_STREAM_WAIT);
}

int cudaEventSynchronize(struct fake_cuda_event *event)
{
	return wait_in(wait_for(event, SYNC_EVENT, UINT32_MAX), fake_gpu_wait,
		       "cudaEventSynchronize_v3020", CBID_EVENT_SYNC);
}

/* ---- memory ---- */

static int allocate(void **ret_memory, size_t bytes, const char *name, uint32_t cbid)
{
	uint64_t start_ns, memory = 0;
	uint32_t id = fake_gpu_begin(&start_ns);
	int result = cuMemAlloc_v2(&memory, bytes);

	*ret_memory = (void *)(uintptr_t)memory;
	fake_gpu_end(id, start_ns, name, false, cbid);
	return result;
}

static int release(void *memory, const char *name, uint32_t cbid)
{
	uint64_t start_ns;
	uint32_t id = fake_gpu_begin(&start_ns);
	int result = cuMemFree_v2((uint64_t)(uintptr_t)memory);

	fake_gpu_end(id, start_ns, name, false, cbid);
	return result;
}

int cudaMalloc(void **ret_memory, size_t bytes)
{
	return allocate(ret_memory, bytes, "cudaMalloc_v3020", CBID_MALLOC);
}

int cudaMallocPitch(void **ret_memory, size_t *ret_pitch, size_t width, size_t height)
{
	*ret_pitch = (width + PITCH - 1) / PITCH * PITCH;
	return allocate(ret_memory, *ret_pitch * height, "cudaMallocPitch_v3020",
			CBID_MALLOC_PITCH);
}

int cudaMallocManaged(void **ret_memory, size_t bytes, unsigned flags)
{
	return allocate(ret_memory, bytes, "cudaMallocManaged_v6000", CBID_MALLOC_MANAGED);
}

int cudaMallocHost(void **ret_memory, size_t bytes)
{
	(void)usleep(1000 * (unsigned)fake_gpu_setting("FAKE_CUDA_PINNED_MS", 0));
	return allocate(ret_memory, bytes, "cudaMallocHost_v3020", CBID_MALLOC_HOST);
}

int cudaMallocAsync(void **ret_memory, size_t bytes, void *stream)
{
	return allocate(ret_memory, bytes, "cudaMallocAsync_v11020", CBID_MALLOC_ASYNC);
}

int cudaFree(void *memory)
{
	return release(memory, "cudaFree_v3020", CBID_FREE);
}

int cudaFreeHost(void *memory)
{
	return release(memory, "cudaFreeHost_v3020", CBID_FREE_HOST);
}

int cudaFreeAsync(void *memory, void *stream)
{
	return release(memory, "cudaFreeAsync_v11020", CBID_FREE_ASYNC);
}

/* ---- work ---- */

static void submit(struct fake_event *work, const char *name, uint32_t cbid)
{
	uint64_t start_ns;
	bool captured;

	work->correlation_id = fake_gpu_begin(&start_ns);
	pthread_mutex_lock(&lock);
	captured = capturing && capturing_stream == work->stream && capturing->nr < NODES_MAX;
	if (captured) {
		work->graph_node = ++nodes_nr;
		capturing->nodes[capturing->nr++] = *work;
	}
	pthread_mutex_unlock(&lock);
	if (!captured)
		fake_gpu_submit(work);
	fake_gpu_end(work->correlation_id, start_ns, name, false, cbid);
}

int cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, void *stream)
{
	struct fake_event work = {
		.kind = FAKE_COPY,
		.bytes = bytes,
		.copy_kind = (uint8_t)kind,
		.stream = number_of(stream),
	};

	submit(&work, "cudaMemcpyAsync_v3020", CBID_COPY);
	return 0;
}

int cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
		      size_t height, int kind, void *stream)
{
	struct fake_event work = {
		.kind = FAKE_COPY,
		.bytes = width * height,
		.copy_kind = (uint8_t)kind,
		.stream = number_of(stream),
	};

	submit(&work, "cudaMemcpy2DAsync_v3020", CBID_COPY_2D);
	return 0;
}

int cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes,
			void *stream)
{
	struct fake_event work = {
		.kind = FAKE_COPY,
		.bytes = bytes,
		.peer_device = (uint32_t)to_device + 1,
		.stream = number_of(stream),
	};

	submit(&work, "cudaMemcpyPeerAsync_v4000", CBID_COPY_PEER);
	return 0;
}

int cudaMemsetAsync(void *to, int value, size_t bytes, void *stream)
{
	struct fake_event work = {
		.kind = FAKE_SET,
		.bytes = bytes,
		.stream = number_of(stream),
	};

	submit(&work, "cudaMemsetAsync_v3020", CBID_SET);
	return 0;
}

static const char *name_of(const void *function)
{
	Dl_info info;

	if (dladdr(function, &info) && info.dli_saddr == function)
		return info.dli_sname;
	return function;
}

static struct fake_event kernel(const void *function, struct dim3 grid, struct dim3 block,
				size_t shared_bytes, void *stream)
{
	return (struct fake_event){
		.kind = FAKE_KERNEL,
		.name = name_of(function),
		.stream = number_of(stream),
		.grid = {grid.x, grid.y, grid.z},
		.block = {block.x, block.y, block.z},
		.shared_bytes = (uint32_t)shared_bytes,
	};
}

int cudaLaunchKernel(const void *function, struct dim3 grid, struct dim3 block, void **arguments,
		     size_t shared_bytes, void *stream)
{
	struct fake_event work = kernel(function, grid, block, shared_bytes, stream);

	submit(&work, "cudaLaunchKernel_v7000", CBID_LAUNCH);
	return 0;
}

int cudaLaunchKernelExC(const struct fake_config *config, const void *function, void **arguments)
{
	struct fake_event work =
		kernel(function, config->grid, config->block, config->shared_bytes, config->stream);

	submit(&work, "cudaLaunchKernelExC_v11060", CBID_LAUNCH_EX);
	return 0;
}

/* ---- graphs ---- */

int cudaStreamBeginCapture(void *stream, int mode)
{
	pthread_mutex_lock(&lock);
	capturing = calloc(1, sizeof(*capturing));
	if (capturing)
		capturing->id = ++graphs_nr;
	capturing_stream = number_of(stream);
	pthread_mutex_unlock(&lock);
	return note("cudaStreamBeginCapture_v10000", CBID_BEGIN_CAPTURE);
}

int cudaStreamEndCapture(void *stream, void **ret_graph)
{
	pthread_mutex_lock(&lock);
	*ret_graph = capturing;
	capturing = NULL;
	pthread_mutex_unlock(&lock);
	return note("cudaStreamEndCapture_v10000", CBID_END_CAPTURE);
}

int cudaGraphInstantiate(void **ret_exec, void *graph, unsigned long long flags)
{
	*ret_exec = graph;
	fake_gpu_count("graphs");
	return note("cudaGraphInstantiate_v12000", CBID_INSTANTIATE);
}

/* All nodes have the launch's correlation id. */
int cudaGraphLaunch(void *exec, void *stream)
{
	const struct graph *graph = exec;
	uint64_t start_ns;
	uint32_t id = fake_gpu_begin(&start_ns);

	for (uint32_t i = 0; i < graph->nr; i++) {
		struct fake_event node = graph->nodes[i];

		node.correlation_id = id;
		node.graph = graph->id;
		node.stream = number_of(stream);
		fake_gpu_submit(&node);
	}
	fake_gpu_end(id, start_ns, "cudaGraphLaunch_v10000", false, CBID_GRAPH_LAUNCH);
	return 0;
}
