/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * beside VARIANT SECONDS GRAPHS MEMORIES SEED CUDART CUPTI: uses CUPTI and gives it back again and
 * again, as the collector does, while GRAPHS threads create CUDA graphs and MEMORIES threads
 * allocate and free memory. Says "survived ROUNDS", and in how many of them CUPTI was finalized, or
 * "died" and where. Words in VARIANT: "held": those threads are held outside of CUDA while the
 * records are switched on and while CUPTI is given back; "down": CUPTI is finalized, not only
 * unsubscribed; "first": CUPTI is used first, and once; "kept": graphs are kept for a while and
 * launched again. Functions that the given libraries lack are not called.
 */
#include "collector/cupti/cupti_abi.h"
#include "collector/cupti/cupti_api_filter.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define THREADS_MAX  16
#define FRAMES	     24
#define STACK_BYTES  (1 << 16)
#define BUFFER_BYTES (1 << 20)
#define MEMORY_BYTES (3 << 20)
#define FILL_BYTES   4096
#define WAIT_EVERY   16 /* rounds, else the GPU would be all that is waited for */
#define WARM_STEPS   20 /* of each thread */
#define KEPT_NR	     16 /* graphs of a thread */
#define RELAXED	     2	/* cudaStreamCaptureModeRelaxed */

static uint32_t kinds[] = {CUPTI_KERNEL, CUPTI_RUNTIME, CUPTI_DRIVER,
			   CUPTI_MEMCPY, CUPTI_MEMSET,	CUPTI_PEER_COPY,
			   CUPTI_SYNC,	 CUPTI_EVENT,	CUPTI_OVERHEAD};

static struct {
	int (*cudaMalloc)(void **memory, size_t bytes);
	int (*cudaFree)(void *memory);
	int (*cudaStreamCreate)(void **stream);
	int (*cudaMemsetAsync)(void *memory, int value, size_t bytes, void *stream);
	int (*cudaStreamSynchronize)(void *stream);
	int (*cudaStreamBeginCapture)(void *stream, int mode);
	int (*cudaStreamEndCapture)(void *stream, void **graph);
	int (*cudaGraphInstantiate)(void **exec, void *graph, unsigned long long flags);
	int (*cudaGraphLaunch)(void *exec, void *stream);
	int (*cudaGraphExecDestroy)(void *exec);
	int (*cudaGraphDestroy)(void *graph);
	int (*cuDriverGetVersion)(int *version);
} cuda;

static struct cupti_functions cupti;
static void *subscriber;
static pthread_t owner;
static bool down_asked;
static bool held, down, first, kept, stopping;
static pthread_rwlock_t door;
static unsigned long steps;
static volatile unsigned rounds, downs;
static const char *volatile doing = "nothing";

static int not_there(void)
{
	return 0;
}

/* ---- its end ---- */

static void emit(int number)
{
	void *frames[FRAMES];
	char text[128];
	int nr = snprintf(text, sizeof(text), "died of signal %d in round %u during %s:\n", number,
			  rounds, doing);

	if (write(STDOUT_FILENO, text, (size_t)nr) == nr)
		backtrace_symbols_fd(frames, backtrace(frames, FRAMES), STDOUT_FILENO);
	_exit(1);
}

static void begin_thread(void)
{
	stack_t own = {.ss_sp = malloc(STACK_BYTES), .ss_size = STACK_BYTES};

	(void)sigaltstack(&own, NULL);
}

static void watch(void)
{
	static const int numbers[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
	struct sigaction action = {.sa_handler = emit, .sa_flags = SA_ONSTACK | SA_RESETHAND};
	void *frame;

	/* It loads what it needs when it is called first. */
	(void)backtrace(&frame, 1);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		(void)sigaction(numbers[i], &action, NULL);
	begin_thread();
}

/* ---- the threads that use CUDA ---- */

static void go_in(void)
{
	if (held)
		(void)pthread_rwlock_rdlock(&door);
}

static void come_out(int result)
{
	if (held)
		(void)pthread_rwlock_unlock(&door);
	if (!result)
		return;
	printf("refused: error %d\n", result);
	(void)fflush(stdout);
	_exit(2);
}

#define CALL(...)                                                                                  \
	do {                                                                                       \
		go_in();                                                                           \
		come_out(__VA_ARGS__);                                                             \
	} while (0)

/* One after another; where they are kept, each in the place of an old one. */
static void *make_graphs(void *arg)
{
	void *stream, *memory, *graph, *execs[KEPT_NR] = {NULL};

	begin_thread();
	CALL(cuda.cudaStreamCreate(&stream));
	CALL(cuda.cudaMalloc(&memory, FILL_BYTES));
	for (unsigned i = 0; !stopping; i++) {
		void **exec = &execs[kept ? i % KEPT_NR : 0];
		void *other;

		if (*exec)
			CALL(cuda.cudaGraphExecDestroy(*exec));
		*exec = NULL;
		CALL(cuda.cudaStreamBeginCapture(stream, RELAXED));
		CALL(cuda.cudaMemsetAsync(memory, 0, FILL_BYTES, stream));
		CALL(cuda.cudaMemsetAsync(memory, 1, FILL_BYTES, stream));
		CALL(cuda.cudaStreamEndCapture(stream, &graph));
		CALL(cuda.cudaGraphInstantiate(exec, graph, 0));
		other = execs[(i + 1) % KEPT_NR];
		if (kept && other)
			CALL(cuda.cudaGraphLaunch(other, stream));
		if (i % WAIT_EVERY == 0) {
			CALL(cuda.cudaGraphLaunch(*exec, stream));
			CALL(cuda.cudaStreamSynchronize(stream));
		}
		CALL(cuda.cudaGraphDestroy(graph));
		(void)__sync_fetch_and_add(&steps, 1);
	}
	return NULL;
}

static void *take_memory(void *arg)
{
	void *stream, *memory;

	begin_thread();
	CALL(cuda.cudaStreamCreate(&stream));
	for (unsigned i = 0; !stopping; i++) {
		CALL(cuda.cudaMalloc(&memory, MEMORY_BYTES));
		if (i % WAIT_EVERY == 0) {
			CALL(cuda.cudaMemsetAsync(memory, 0, FILL_BYTES, stream));
			CALL(cuda.cudaStreamSynchronize(stream));
		}
		CALL(cuda.cudaFree(memory));
		(void)__sync_fetch_and_add(&steps, 1);
	}
	return NULL;
}

/* ---- CUPTI, as the collector has it ---- */

static void request(uint8_t **buffer, size_t *bytes, size_t *records_max)
{
	*buffer = aligned_alloc(8, BUFFER_BYTES);
	*bytes = BUFFER_BYTES;
	*records_max = 0;
}

static void complete(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid)
{
	free(buffer);
}

static void on_call(void *arg, uint32_t domain, uint32_t cbid, const void *data)
{
	const struct cupti_callback_data *d = data;

	if (d->site != CUPTI_SITE_EXIT || !down_asked || !pthread_equal(owner, pthread_self()))
		return;
	down_asked = false;
	(void)cupti.cuptiUnsubscribe(subscriber);
	downs += !cupti.cuptiFinalize();
}

static void hold(bool on)
{
	if (held)
		(void)(on ? pthread_rwlock_wrlock : pthread_rwlock_unlock)(&door);
}

static void switch_on(void)
{
	doing = "cuptiActivityEnable";
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		(void)cupti.cuptiActivityEnable(kinds[i]);
	doing = "single calls off";
	for (size_t i = 0; i < sizeof(cupti_filtered_runtime) / sizeof(cupti_filtered_runtime[0]);
	     i++)
		(void)cupti.cuptiActivityEnableRuntimeApi(cupti_filtered_runtime[i], 0);
	for (size_t i = 0; i < sizeof(cupti_filtered_driver) / sizeof(cupti_filtered_driver[0]);
	     i++)
		(void)cupti.cuptiActivityEnableDriverApi(cupti_filtered_driver[i], 0);
	doing = "device timestamps";
	(void)cupti.cuptiActivityEnableCudaEventDeviceTimestamps(1);
}

static void come(void)
{
	doing = "cuptiSubscribe";
	(void)cupti.cuptiSubscribe(&subscriber, on_call, NULL);
	(void)cupti.cuptiSetThreadIdType(CUPTI_THREAD_SYSTEM);
	(void)cupti.cuptiActivityRegisterCallbacks(request, complete);
	hold(true);
	switch_on();
	hold(false);
	doing = "records on";
}

static void take_down(void)
{
	int version;

	doing = "cuptiFinalize";
	(void)cupti.cuptiEnableDomain(1, subscriber, CUPTI_DOMAIN_DRIVER);
	down_asked = true;
	(void)cuda.cuDriverGetVersion(&version);
	down_asked = false;
}

static void go(void)
{
	hold(true);
	doing = "cuptiActivityDisable";
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		(void)cupti.cuptiActivityDisable(kinds[i]);
	doing = "flush";
	(void)cupti.cuptiActivityFlushAll(CUPTI_FLUSH_COMPLETED);
	(void)cupti.cuptiActivityFlushAll(CUPTI_FLUSH_FORCED);
	(void)cupti.cuptiActivityEnableCudaEventDeviceTimestamps(0);
	(void)cupti.cuptiSetThreadIdType(CUPTI_THREAD_DEFAULT);
	if (down)
		take_down();
	doing = "cuptiUnsubscribe";
	(void)cupti.cuptiUnsubscribe(subscriber); /* no more than an error after the other */
	hold(false);
	doing = "CUPTI gone";
}

static void nap(unsigned least_us, unsigned more_us)
{
	(void)usleep(least_us + (unsigned)rand() % more_us);
}

static void *come_and_go(void *arg)
{
	begin_thread();
	owner = pthread_self();
	while (!stopping) {
		come();
		nap(1000, 8000);
		(void)cupti.cuptiActivityFlushAll(CUPTI_FLUSH_COMPLETED);
		nap(500, 4000);
		if (first)
			break;
		go();
		rounds++;
		nap(500, 6000);
	}
	return NULL;
}

/* ---- the libraries ---- */

static void bind(void *library, const char *name, void *function)
{
	void *found = library ? dlsym(library, name) : NULL;

	*(void **)function = found ? found : (void *)not_there;
}

#define BIND(library, table, name) bind(library, #name, &(table).name)

static void load(const char *cudart_path, const char *cupti_path)
{
	void *cudart = dlopen(cudart_path, RTLD_LAZY);
	void *tools = dlopen(cupti_path, RTLD_LAZY | RTLD_NODELETE);
	void *driver = dlopen("libcuda.so.1", RTLD_LAZY);

	if (!cudart || !tools) {
		printf("refused: %s\n", dlerror());
		exit(2);
	}
	BIND(cudart, cuda, cudaMalloc);
	BIND(cudart, cuda, cudaFree);
	BIND(cudart, cuda, cudaStreamCreate);
	BIND(cudart, cuda, cudaMemsetAsync);
	BIND(cudart, cuda, cudaStreamSynchronize);
	BIND(cudart, cuda, cudaStreamBeginCapture);
	BIND(cudart, cuda, cudaStreamEndCapture);
	BIND(cudart, cuda, cudaGraphInstantiate);
	BIND(cudart, cuda, cudaGraphLaunch);
	BIND(cudart, cuda, cudaGraphExecDestroy);
	BIND(cudart, cuda, cudaGraphDestroy);
	BIND(driver, cuda, cuDriverGetVersion);
	BIND(tools, cupti, cuptiSubscribe);
	BIND(tools, cupti, cuptiUnsubscribe);
	BIND(tools, cupti, cuptiEnableDomain);
	BIND(tools, cupti, cuptiActivityRegisterCallbacks);
	BIND(tools, cupti, cuptiActivityEnable);
	BIND(tools, cupti, cuptiActivityDisable);
	BIND(tools, cupti, cuptiActivityFlushAll);
	BIND(tools, cupti, cuptiSetThreadIdType);
	BIND(tools, cupti, cuptiFinalize);
	BIND(tools, cupti, cuptiActivityEnableRuntimeApi);
	BIND(tools, cupti, cuptiActivityEnableDriverApi);
	BIND(tools, cupti, cuptiActivityEnableCudaEventDeviceTimestamps);
}

/* Who waits for all to be out comes before those who want in again. */
static void make_door(void)
{
	pthread_rwlockattr_t attr;

	(void)pthread_rwlockattr_init(&attr);
	(void)pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	(void)pthread_rwlock_init(&door, &attr);
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS_MAX], last;
	unsigned graphs, nr;

	if (argc != 8)
		return 2;
	held = strstr(argv[1], "held");
	down = strstr(argv[1], "down");
	first = strstr(argv[1], "first");
	kept = strstr(argv[1], "kept");
	if (strstr(argv[1], "calls")) {
		kinds[0] = CUPTI_RUNTIME;
		kinds[1] = CUPTI_KERNEL;
	}
	graphs = (unsigned)atoi(argv[3]);
	nr = graphs + (unsigned)atoi(argv[4]);
	srand((unsigned)atoi(argv[5]));
	load(argv[6], argv[7]);
	make_door();
	watch();
	for (unsigned i = 0; i < nr && i < THREADS_MAX; i++)
		(void)pthread_create(&threads[i], NULL, i < graphs ? make_graphs : take_memory,
				     NULL);
	while (__sync_fetch_and_add(&steps, 0) < WARM_STEPS * nr)
		(void)usleep(1000);
	nap(1, 7000);
	(void)pthread_create(&last, NULL, come_and_go, NULL);
	if (!first)
		(void)usleep((useconds_t)(atof(argv[2]) * 1e6));
	stopping = !first;
	(void)pthread_join(last, NULL);
	printf("survived %u rounds, taken down in %u, %lu steps\n", rounds, downs, steps);
	(void)fflush(stdout);
	/* What CUDA and CUPTI do at the end of a process is another matter. */
	_exit(0);
}
