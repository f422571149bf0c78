/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A program whose threads spend their time in code that is hard to unwind, until its standard input
 * ends: signal handlers (on their own stack too), frames that were aligned or grow by alloca(), the
 * PLT, callbacks through the C library, the vDSO, and a recursion deeper than a stack may be.
 */
#include <alloca.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TURNS 20000

static volatile uint64_t sink;

static __attribute__((noinline)) void spin(int turns)
{
	for (int i = 0; i < turns; i++)
		sink += (uint64_t)i;
}

static void on_signal(int number)
{
	spin(TURNS);
	sink++;
}

static __attribute__((noinline)) void in_handler(int number)
{
	(void)raise(number);
	sink++;
}

/* The alignment alone makes the compiler address the frame by what it saved of the stack pointer
 * before, where a variable size comes with it. */
static __attribute__((noinline)) void in_aligned(int bytes)
{
	_Alignas(64) char aligned[64];
	char *grown = alloca((size_t)bytes);

	memset(aligned, bytes, sizeof(aligned));
	memset(grown, bytes, (size_t)bytes);
	spin(TURNS);
	sink += (uint64_t)aligned[sink % 64] + (uint64_t)grown[sink % (uint64_t)bytes];
}

static __attribute__((noinline, force_align_arg_pointer)) void in_realigned(int bytes)
{
	_Alignas(64) char aligned[64];

	memset(aligned, bytes, sizeof(aligned));
	in_aligned(bytes);
	sink += (uint64_t)aligned[sink % 64];
}

static int compare(const void *a, const void *b)
{
	spin(50);
	return *(const int *)a - *(const int *)b;
}

static __attribute__((noinline)) void in_callback(void)
{
	int list[100];

	for (int i = 0; i < 100; i++)
		list[i] = (i * 37) % 100;
	qsort(list, 100, sizeof(*list), compare);
	sink += (uint64_t)list[0];
}

/* Each turn is little more than the PLT's entry and a function of the C library. */
static __attribute__((noinline)) void in_plt(void)
{
	for (int i = 0; i < TURNS / 10; i++)
		sink += (uint64_t)abs((int)sink);
}

static __attribute__((noinline)) void in_vdso(void)
{
	struct timespec ts;

	for (int i = 0; i < TURNS / 50; i++) {
		(void)clock_gettime(CLOCK_MONOTONIC, &ts);
		sink += (uint64_t)ts.tv_nsec;
	}
}

static __attribute__((noinline)) void in_recursion(int depth)
{
	if (depth)
		in_recursion(depth - 1);
	else
		spin(TURNS / 4);
	sink++;
}

static void *work(void *arg)
{
	stack_t own = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};

	if (!own.ss_sp || sigaltstack(&own, NULL))
		return NULL;
	for (;;) {
		in_handler(SIGUSR1);
		in_handler(SIGUSR2);
		in_realigned(300);
		in_callback();
		in_plt();
		in_vdso();
		in_recursion(300);
		in_recursion(20);
	}
	return NULL;
}

int main(void)
{
	struct sigaction plain = {.sa_handler = on_signal};
	struct sigaction own_stack = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
	pthread_t threads[2];
	char c;

	(void)sigaction(SIGUSR1, &plain, NULL);
	(void)sigaction(SIGUSR2, &own_stack, NULL);
	for (int i = 0; i < 2; i++)
		if (pthread_create(&threads[i], NULL, work, NULL))
			return 1;
	(void)puts("ready");
	(void)fflush(stdout);
	while (read(STDIN_FILENO, &c, 1) > 0)
		;
	return 0;
}
