/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A program that uses CUDA and has no other aim: it does what its standard input says, a line at a
 * time, and answers each with a line. "work THREADS ROUNDS", "driver N", "busy 0|1", "jump NS",
 * "truth FILE", "count WORD", "keep 0|1" (call CUDA all the time), "leave". With the argument
 * "lazy" it first uses CUDA when it is told to work.
 */
#include "fake/fake_gpu.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define THREADS_MAX 16
#define H2D	    1
#define D2H	    2

struct dim3 {
	unsigned x, y, z;
};

int cudaGetDeviceCount(int *ret_nr);
int cudaGetDevice(int *ret_device);
int cudaMalloc(void **ret_memory, size_t bytes);
int cudaFree(void *memory);
int cudaStreamCreate(void **ret_stream);
int cudaStreamSynchronize(void *stream);
int cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, void *stream);
int cudaMemsetAsync(void *to, int value, size_t bytes, void *stream);
int cudaLaunchKernel(const void *function, struct dim3 grid, struct dim3 block, void **arguments,
		     size_t shared_bytes, void *stream);
int cuLaunchKernel(const void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
		   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
		   void *stream, void **arguments, void **extra);

static const char *const kernels[] = {
	"_Z6vectorPKfS0_Pfi",
	"_ZN7cutlass6KernelI4gemmEEvNT_6ParamsE",
	"void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>",
};

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

static int obey(char *line)
{
	unsigned threads_nr, nr;
	long long ns;
	char word[4096];

	if (sscanf(line, "work %u %u", &threads_nr, &rounds) == 2) {
		work_on(threads_nr);
	} else if (sscanf(line, "driver %u", &nr) == 1) {
		for (unsigned i = 0; i < nr; i++)
			(void)cuLaunchKernel(kernels[0], 5, 1, 1, 64, 1, 1, 0, (void *)7, NULL,
					     NULL);
		(void)cudaStreamSynchronize(NULL);
	} else if (sscanf(line, "keep %u", &nr) == 1) {
		keep_on(nr != 0);
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
