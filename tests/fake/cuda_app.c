/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A program that uses CUDA and has no other aim: it does what its standard input says, a line at a
 * time, and answers each with a line. "work THREADS ROUNDS", "driver N", "busy 0|1", "jump NS",
 * "named N" (launches through the driver, of a kernel by each of its two handles), "truth FILE",
 * "count WORD", "keep 0|1" (call CUDA all the time), "hammer THREADS" (they do nothing else; 0 ends
 * it), "graphs THREADS" (the same, but they make and launch graphs), "pin" (a thread
 * takes pinned memory), "steps MS" (a thread waits for one such kernel after the other), "wait MS"
 * (a thread waits for a kernel that takes so long), "calls N" (one of each), "graph N" (launches of
 * a graph of three nodes), "events N" (records of one event on one stream, each waited for by
 * another stream and by the host), "devices N" (work on each device), "rate N US" (N launches, one
 * each US microseconds; answers how long each took), "records 0|1" (take CUPTI, have its records
 * and drop them, without reading any), "leave". With the argument "lazy" it first uses CUDA when it
 * is told to work.
 */
#include "collector/cupti/cupti_abi.h"
#include "fake/fake_runtime.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define THREADS_MAX 16
#define H2D	    1
#define D2H	    2

static const char *const kernels[] = {
	"_Z6vectorPKfS0_Pfi",
	"_ZN7cutlass6KernelI4gemmEEvNT_6ParamsE",
	"void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>",
};

/* A kernel's host function: its symbol is the kernel's name. */
FAKE_GPU_PUBLIC void vector_add(const float *a) __asm__("_Z10vector_addPKf");

void vector_add(const float *a)
{
}

static unsigned rounds;

static void *work(void *arg)
{
	size_t bytes = 4096 + 1000 * (size_t)(uintptr_t)arg;
	void *stream, *memory;
	int device;

	(void)cudaStreamCreate(&stream);
	for (unsigned i = 0; i < rounds; i++) {
		(void)cudaGetDevice(&device);
		(void)cudaMalloc(&memory, bytes);
		(void)cudaMemcpyAsync(memory, NULL, bytes, H2D, stream);
		for (unsigned k = 0; k < sizeof(kernels) / sizeof(kernels[0]); k++)
			(void)cudaLaunchKernel(kernels[k], (struct dim3){1 + i % 100, 2, 3},
					       (struct dim3){32 * (k + 1), 2, 1}, NULL, 16 * k,
					       stream);
		(void)cudaMemsetAsync(memory, 0, bytes / 2, stream);
		(void)cudaMemcpyAsync(NULL, memory, bytes / 4, D2H, stream);
		(void)cudaStreamSynchronize(stream);
		(void)cudaFree(memory);
	}
	return NULL;
}

static void work_on(unsigned threads_nr)
{
	pthread_t threads[THREADS_MAX];

	if (threads_nr > THREADS_MAX)
		threads_nr = THREADS_MAX;
	for (unsigned i = 0; i < threads_nr; i++)
		if (pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)i))
			abort();
	for (unsigned i = 0; i < threads_nr; i++)
		(void)pthread_join(threads[i], NULL);
}

#define DRIVER_STREAM ((void *)9)

static void allocate_each(void *stream)
{
	uint64_t handle;
	size_t pitch;
	void *p;

	(void)cudaMallocManaged(&p, 1000, 1);
	(void)cudaFree(p);
	(void)cudaMallocHost(&p, 2000);
	(void)cudaFreeHost(p);
	(void)cudaMallocAsync(&p, 3000, stream);
	(void)cudaFreeAsync(p, stream);
	(void)cudaMallocPitch(&p, &pitch, 100, 4);
	(void)cudaFree(p);
	if (!cudaMalloc(&p, SIZE_MAX))
		abort();
	(void)cuMemAlloc_v2(&handle, 5000);
	(void)cuMemFree_v2(handle);
	(void)cuMemCreate(&handle, 6000, NULL, 0);
	(void)cuMemRelease(handle);
}

/* One of each call that has a shape of its own. */
static void call_each(void)
{
	struct fake_config config = {{4, 5, 6}, {7, 8, 9}, 64, NULL, NULL, 0};
	struct fake_driver_config driver = {{3, 2, 1}, {96, 1, 1}, 32, DRIVER_STREAM};
	void *stream;

	(void)cudaStreamCreate(&stream);
	config.stream = stream;
	(void)cudaLaunchKernel((const void *)vector_add, (struct dim3){2, 1, 1},
			       (struct dim3){64, 1, 1}, NULL, 0, stream);
	(void)cudaLaunchKernelExC(&config, (const void *)vector_add, NULL);
	(void)cuLaunchKernelEx(&driver, kernels[1], NULL, NULL);
	(void)cudaMemcpy2DAsync(NULL, 128, NULL, 256, 100, 7, D2H, stream);
	(void)cuMemsetD32Async(0, 1, 25, DRIVER_STREAM);
	allocate_each(stream);
	(void)cudaDeviceSynchronize();
}

static void launch_graph_on(void *stream, unsigned nr)
{
	void *graph, *exec;

	(void)cudaStreamBeginCapture(stream, 0);
	(void)cudaLaunchKernel((const void *)vector_add, (struct dim3){2, 1, 1},
			       (struct dim3){64, 1, 1}, NULL, 0, stream);
	(void)cudaMemcpyAsync(NULL, NULL, 4096, H2D, stream);
	(void)cudaLaunchKernel(kernels[1], (struct dim3){3, 1, 1}, (struct dim3){32, 1, 1}, NULL, 0,
			       stream);
	(void)cudaStreamEndCapture(stream, &graph);
	(void)cudaGraphInstantiate(&exec, graph, 0);
	for (unsigned i = 0; i < nr; i++)
		(void)cudaGraphLaunch(exec, stream);
	(void)cudaStreamSynchronize(stream);
}

static void launch_graph(unsigned nr)
{
	void *stream;

	(void)cudaStreamCreate(&stream);
	launch_graph_on(stream, nr);
}

static void wait_for_events(unsigned nr)
{
	struct fake_cuda_event *event;
	void *from, *to;

	(void)cudaStreamCreate(&from);
	(void)cudaStreamCreate(&to);
	(void)cudaEventCreate(&event);
	for (unsigned i = 0; i < nr; i++) {
		(void)cudaMemsetAsync(NULL, 0, 4096, from);
		(void)cudaEventRecord(event, from);
		(void)cudaStreamWaitEvent(to, event, 0);
		(void)cudaMemsetAsync(NULL, 0, 4096, to);
		(void)cudaEventSynchronize(event);
	}
	(void)cudaDeviceSynchronize();
}

static void work_on_devices(unsigned nr)
{
	int devices;

	(void)cudaGetDeviceCount(&devices);
	for (int i = 0; i < devices * (int)nr; i++) {
		int device = i % devices;
		void *stream;

		(void)cudaSetDevice(device);
		(void)cudaStreamCreate(&stream);
		(void)cudaLaunchKernel((const void *)vector_add, (struct dim3){9, 1, 1},
				       (struct dim3){256, 1, 1}, NULL, 0, stream);
		(void)cudaMemcpyPeerAsync(NULL, (device + 1) % devices, NULL, device, 1 << 20,
					  stream);
		(void)cudaMemsetAsync(NULL, 0, 4096, stream);
		(void)cudaStreamSynchronize(stream);
	}
	(void)cudaSetDevice(0);
}

/* Nanoseconds that a launch took, on average. */
static double launch_at_rate(unsigned nr, unsigned pause_us)
{
	uint64_t next_ns = fake_gpu_now_ns(), spent_ns = 0;

	for (unsigned i = 0; i < nr; i++) {
		uint64_t begin_ns;

		while ((begin_ns = fake_gpu_now_ns()) < next_ns)
			;
		(void)cudaLaunchKernel((const void *)vector_add, (struct dim3){2, 1, 1},
				       (struct dim3){64, 1, 1}, NULL, 0, NULL);
		spent_ns += fake_gpu_now_ns() - begin_ns;
		next_ns = begin_ns + pause_us * 1000ULL;
	}
	return (double)spent_ns / nr;
}

/* ---- CUPTI's records, read by nobody: what they cost by themselves ---- */

static struct {
	pthread_t flusher;
	bool on;
	void *subscriber;
	uint8_t buffer[1 << 20] __attribute__((aligned(8)));
	struct cupti_functions call;
} records;

/* The stand-in has one buffer at a time. */
static void lend(uint8_t **ret_buffer, size_t *ret_bytes, size_t *ret_records_max)
{
	*ret_buffer = records.buffer;
	*ret_bytes = sizeof(records.buffer);
	*ret_records_max = 0;
}

static void drop(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid_bytes)
{
}

static void on_call(void *arg, uint32_t domain, uint32_t cbid, const void *data)
{
}

/* As often as the collector does. */
static void *flush(void *arg)
{
	while (__atomic_load_n(&records.on, __ATOMIC_RELAXED)) {
		(void)records.call.cuptiActivityFlushAll(CUPTI_FLUSH_COMPLETED);
		(void)usleep(100000);
	}
	return NULL;
}

/* The kinds of record that the collector has. */
static int take_records(bool on)
{
	static const uint32_t kinds[] = {CUPTI_RUNTIME, CUPTI_DRIVER,	 CUPTI_KERNEL,
					 CUPTI_MEMCPY,	CUPTI_PEER_COPY, CUPTI_MEMSET,
					 CUPTI_SYNC,	CUPTI_EVENT,	 CUPTI_OVERHEAD};
	static const size_t kinds_nr = sizeof(kinds) / sizeof(kinds[0]);
	struct cupti_functions *call = &records.call;
	void *cupti = dlopen("libcupti.so.12", RTLD_NOW | RTLD_LOCAL);

	if (!cupti || on == records.on)
		return 1;
	*(void **)&call->cuptiSubscribe = dlsym(cupti, "cuptiSubscribe");
	*(void **)&call->cuptiUnsubscribe = dlsym(cupti, "cuptiUnsubscribe");
	*(void **)&call->cuptiActivityRegisterCallbacks =
		dlsym(cupti, "cuptiActivityRegisterCallbacks");
	*(void **)&call->cuptiActivityEnable = dlsym(cupti, "cuptiActivityEnable");
	*(void **)&call->cuptiActivityDisable = dlsym(cupti, "cuptiActivityDisable");
	*(void **)&call->cuptiActivityFlushAll = dlsym(cupti, "cuptiActivityFlushAll");
	if (on && (call->cuptiSubscribe(&records.subscriber, on_call, NULL) ||
		   call->cuptiActivityRegisterCallbacks(lend, drop)))
		return 1;
	for (size_t i = 0; i < kinds_nr; i++)
		(void)(on ? call->cuptiActivityEnable : call->cuptiActivityDisable)(kinds[i]);
	records.on = on;
	if (on)
		return pthread_create(&records.flusher, NULL, flush, NULL);
	(void)pthread_join(records.flusher, NULL);
	(void)call->cuptiActivityFlushAll(CUPTI_FLUSH_FORCED); /* gives the buffer back */
	return call->cuptiUnsubscribe(records.subscriber);
}

static bool keeping;

static void *keep(void *arg)
{
	int device;

	while (__atomic_load_n(&keeping, __ATOMIC_RELAXED)) {
		(void)cudaGetDevice(&device);
		(void)usleep(1000);
	}
	return NULL;
}

static void keep_on(bool on)
{
	static pthread_t thread;

	if (on == keeping)
		return;
	__atomic_store_n(&keeping, on, __ATOMIC_RELAXED);
	if (on && pthread_create(&thread, NULL, keep, NULL))
		abort();
	if (!on)
		(void)pthread_join(thread, NULL);
}

#define HAMMER_TURNS   20000 /* outside of CUDA, some ten microseconds */
#define GRAPH_PAUSE_US 50

static bool hammering;

static void *hammer(void *arg)
{
	void *memory;

	while (__atomic_load_n(&hammering, __ATOMIC_RELAXED)) {
		(void)cudaMalloc(&memory, 4096);
		(void)cudaFree(memory);
		for (volatile unsigned i = 0; i < HAMMER_TURNS; i++)
			;
	}
	return NULL;
}

static void *make_graphs(void *arg)
{
	void *stream;

	(void)cudaStreamCreate(&stream);
	while (__atomic_load_n(&hammering, __ATOMIC_RELAXED)) {
		launch_graph_on(stream, 1);
		(void)usleep(GRAPH_PAUSE_US);
	}
	return NULL;
}

static void hammer_on(unsigned threads_nr, void *(*what)(void *arg))
{
	static pthread_t threads[THREADS_MAX];
	static unsigned nr;

	__atomic_store_n(&hammering, false, __ATOMIC_RELAXED);
	while (nr)
		(void)pthread_join(threads[--nr], NULL);
	__atomic_store_n(&hammering, true, __ATOMIC_RELAXED);
	for (; nr < threads_nr && nr < THREADS_MAX; nr++)
		if (pthread_create(&threads[nr], NULL, what, NULL))
			abort();
}

#define BLOCKS_PER_MS 100000 /* see KERNEL_NS, BLOCK_NS */

static void *wait_for_kernel(void *arg)
{
	struct dim3 grid = {(unsigned)(uintptr_t)arg * BLOCKS_PER_MS, 1, 1};
	void *stream;

	(void)cudaStreamCreate(&stream);
	(void)cudaLaunchKernel((const void *)vector_add, grid, (struct dim3){1, 1, 1}, NULL, 0,
			       stream);
	(void)cudaStreamSynchronize(stream);
	return NULL;
}

#define STEP_PAUSE_US 1000

static void *wait_for_kernels(void *arg)
{
	for (;;) {
		(void)wait_for_kernel(arg);
		(void)usleep(STEP_PAUSE_US);
	}
	return NULL;
}

static void *take_pinned(void *arg)
{
	void *memory;

	(void)cudaMallocHost(&memory, 4096);
	return NULL;
}

static void do_beside(void *(*what)(void *arg), void *arg)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, what, arg) || pthread_detach(thread))
		abort();
}

static void launch_named(unsigned nr)
{
	const void *functions[2];

	(void)cuModuleGetFunction(&functions[0], NULL, kernels[0]);
	(void)cuKernelGetFunction(&functions[1], functions[0]);
	for (unsigned i = 0; i < 2 * nr; i++)
		(void)cuLaunchKernel(functions[i % 2], 5, 1, 1, 64, 1, 1, 0, NULL, NULL, NULL);
	(void)cudaStreamSynchronize(NULL);
}

static int obey(char *line)
{
	unsigned threads_nr, nr, us;
	long long ns;
	char word[4096];

	if (sscanf(line, "work %u %u", &threads_nr, &rounds) == 2) {
		work_on(threads_nr);
	} else if (sscanf(line, "driver %u", &nr) == 1) {
		for (unsigned i = 0; i < nr; i++)
			(void)cuLaunchKernel(kernels[0], 5, 1, 1, 64, 1, 1, 0, (void *)7, NULL,
					     NULL);
		(void)cudaStreamSynchronize(NULL);
	} else if (sscanf(line, "named %u", &nr) == 1) {
		launch_named(nr);
	} else if (sscanf(line, "calls %u", &nr) == 1) {
		for (unsigned i = 0; i < nr; i++)
			call_each();
	} else if (sscanf(line, "graph %u", &nr) == 1) {
		launch_graph(nr);
	} else if (sscanf(line, "events %u", &nr) == 1) {
		wait_for_events(nr);
	} else if (sscanf(line, "devices %u", &nr) == 1) {
		work_on_devices(nr);
	} else if (sscanf(line, "rate %u %u", &nr, &us) == 2) {
		printf("took %.1f\n", launch_at_rate(nr, us));
		return 0;
	} else if (sscanf(line, "records %u", &nr) == 1) {
		if (take_records(nr != 0))
			return 1;
	} else if (sscanf(line, "keep %u", &nr) == 1) {
		keep_on(nr != 0);
	} else if (sscanf(line, "hammer %u", &nr) == 1) {
		hammer_on(nr, hammer);
	} else if (sscanf(line, "graphs %u", &nr) == 1) {
		hammer_on(nr, make_graphs);
	} else if (sscanf(line, "wait %u", &nr) == 1) {
		do_beside(wait_for_kernel, (void *)(uintptr_t)nr);
	} else if (sscanf(line, "steps %u", &nr) == 1) {
		do_beside(wait_for_kernels, (void *)(uintptr_t)nr);
	} else if (!strcmp(line, "pin\n")) {
		do_beside(take_pinned, NULL);
	} else if (sscanf(line, "busy %u", &nr) == 1) {
		fake_gpu_set_busy((int)nr);
	} else if (sscanf(line, "jump %lld", &ns) == 1) {
		fake_gpu_jump(ns);
	} else if (sscanf(line, "truth %4095[^\n]", word) == 1) {
		if (fake_gpu_truth(word))
			return 1;
	} else if (sscanf(line, "count %4095[^\n]", word) == 1) {
		printf("counted %u\n", fake_gpu_counted(word));
		return 0;
	} else {
		return 1;
	}
	printf("did %s", line);
	return 0;
}

int main(int argc, char **argv)
{
	char line[8192];
	int devices;

	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc < 2 || strcmp(argv[1], "lazy"))
		(void)cudaGetDeviceCount(&devices);
	printf("ready %s\n", fake_gpu_marker);
	while (fgets(line, sizeof(line), stdin)) {
		if (!strncmp(line, "leave", 5))
			return 0;
		if (obey(line))
			return 1;
	}
	return 0;
}
