/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The library that the injection tests inject. It uses what the collector uses: the allocator, a
 * constructor, thread-local data, vector registers, a thread that it joins. It counts its calls in
 * a shared page whose descriptor the process named in the environment, if it did.
 */
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((visibility("default"))) int InitializeInjection(void);

static volatile double sink;
static __thread char own[256];

static void *worker(void *arg)
{
	char *p = malloc(1000);

	memset(p, 1, 1000);
	free(p);
	*(int *)arg = 1;
	return NULL;
}

/* Leaves other values in every vector register that the compiler will use. */
static void use_registers(void)
{
	volatile double v[64];

	for (int i = 0; i < 64; i++)
		v[i] = i * 1.5;
	for (int i = 0; i < 64; i++)
		sink += sqrt(v[i]) * v[63 - i];
	__asm__ volatile("fld1\n\tfldpi\n\tpxor %%xmm0, %%xmm0\n\tmovaps %%xmm0, %%xmm15\n\t"
			 "fstp %%st(0)\n\tfstp %%st(0)\n\tstd\n\tcld" ::
				 : "xmm0", "xmm15", "cc");
}

__attribute__((constructor)) static void loaded(void)
{
	use_registers();
}

int InitializeInjection(void)
{
	const char *wait = getenv("INJECTED_WAIT");
	pthread_t thread;
	int ran = 0;
	char c;

	memset(own, 7, sizeof(own));
	use_registers();
	if (pthread_create(&thread, NULL, worker, &ran) || pthread_join(thread, NULL) || !ran)
		return 0;
	if (getenv("INJECTED_STOP"))
		(void)raise(SIGSTOP);
	while (wait && read(atoi(wait), &c, 1) > 0)
		;
	return 1;
}
