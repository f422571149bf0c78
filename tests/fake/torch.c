/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A stand-in for libtorch_cpu: the functions behind at::RecordFunction that the collector uses,
 * under their mangled names, with a record that has a layout of its own. It does on request what
 * real PyTorch does not: ops that never end, ends that come late, and versions that differ from
 * what the collector knows (FAKE_TORCH_FAULT). Single-threaded except for fake_end(). As in PyTorch
 * the list of callbacks has a mutex, which can be made slow.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CALLBACKS_MAX 8
#define RECORDS_MAX   256
#define SEEN_TRIES    20000 /* of 1 ms */
#define NAMED(symbol) __asm__(symbol)

/* A marker that the collector's tests check: this is not PyTorch. */
const char gpuprof_fake_torch[] = "stand-in";

/* at::RecordFunctionCallback. */
struct callback {
	void *(*start)(void **ret_context, const void *record);
	void (*end)(const void *record, void *context);
	double probability;
	bool scopes[10];
	bool needs_inputs, needs_outputs, needs_ids;
};

struct record {
	const void *vtable;
	struct callback callbacks[CALLBACKS_MAX]; /* copied when the record is made */
	uint64_t nr;
	void *contexts[CALLBACKS_MAX];
	char name[64];
	uint64_t other[3];
	int64_t sequence_nr;
	uint64_t between[9];
	uint64_t forward_thread;
	uint64_t handle;
	bool is_async;
	int64_t debug_handle;
	bool started;
};

struct entry {
	struct callback callback;
	uint64_t handle;
};

static struct entry entries[CALLBACKS_MAX];
static uint64_t next_handle = 1;
static pthread_mutex_t list = PTHREAD_MUTEX_INITIALIZER;
static unsigned slow_ms; /* how long the next change takes */
static bool changing, change_seen;
static struct record records[RECORDS_MAX];

static bool fault(const char *name)
{
	const char *is = getenv("FAKE_TORCH_FAULT");

	return is && !strcmp(is, name);
}

uint64_t add_callback(struct callback callback)
	NAMED("_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE");
uint64_t add_callback(struct callback callback)
{
	uint64_t handle = 0;

	pthread_mutex_lock(&list);
	if (slow_ms) {
		__atomic_store_n(&changing, true, __ATOMIC_RELEASE);
		/* Also if the thread that waits for it gets a CPU late. */
		for (int i = 0; i < SEEN_TRIES && !__atomic_load_n(&change_seen, __ATOMIC_ACQUIRE);
		     i++)
			(void)usleep(1000);
		(void)usleep(1000 * slow_ms);
		slow_ms = 0;
		__atomic_store_n(&changing, false, __ATOMIC_RELEASE);
	}
	for (int i = 0; i < CALLBACKS_MAX && !handle; i++) {
		if (entries[i].handle)
			continue;
		handle = next_handle++;
		entries[i] = (struct entry){callback, handle};
	}
	pthread_mutex_unlock(&list);
	if (!handle)
		abort();
	return handle;
}

void remove_callback(uint64_t handle) NAMED("_ZN2at14removeCallbackEm");
void remove_callback(uint64_t handle)
{
	for (int i = 0; i < CALLBACKS_MAX; i++)
		if (entries[i].handle == handle)
			entries[i].handle = 0;
}

const char *record_name(const struct record *r) NAMED("_ZNK2at14RecordFunction4nameEv");
const char *record_name(const struct record *r)
{
	return fault("name") ? "something else" : r->name;
}

uint64_t current_thread(void) NAMED("_ZN2at14RecordFunction15currentThreadIdEv");
uint64_t current_thread(void)
{
	return 1;
}

void construct(struct record *r, uint8_t scope) NAMED("_ZN2at14RecordFunctionC1ENS_11RecordScopeE");
void construct(struct record *r, uint8_t scope)
{
	memset(r, 0, sizeof(*r));
	r->vtable = gpuprof_fake_torch;
	r->sequence_nr = -1;
	r->debug_handle = fault("debug_handle") ? 0 : -1;
	pthread_mutex_lock(&list);
	for (int i = 0; i < CALLBACKS_MAX; i++) {
		const struct callback *c = &entries[i].callback;

		if (!entries[i].handle || !c->scopes[scope] || c->probability < 1.0)
			continue;
		if (c->needs_ids && !fault("handle"))
			r->handle = 1000 + next_handle;
		r->callbacks[r->nr++] = *c;
	}
	pthread_mutex_unlock(&list);
}

#ifndef FAKE_TORCH_OLD
/* Only its presence counts: it shows that callbacks may be added while ops run. */
void construct_from_callbacks(void) NAMED("_ZN2at14RecordFunctionC1EONS_13StepCallbacksE");
void construct_from_callbacks(void)
{
}
#endif

void before(struct record *r, const char *name, int64_t sequence_nr)
	NAMED("_ZN2at14RecordFunction6beforeEPKcl");
void before(struct record *r, const char *name, int64_t sequence_nr)
{
	strncat(r->name, name, sizeof(r->name) - 1);
	if (!fault("sequence"))
		r->sequence_nr = sequence_nr;
	if (fault("two_sequences"))
		r->between[2] = (uint64_t)sequence_nr;
	if (fault("not_called"))
		return;
	for (uint64_t i = 0; i < r->nr; i++)
		(void)r->callbacks[i].start(&r->contexts[i], r);
	r->started = true;
}

void end(struct record *r) NAMED("_ZN2at14RecordFunction3endEv");
void end(struct record *r)
{
	for (uint64_t i = 0; r->started && i < r->nr; i++)
		r->callbacks[i].end(r, r->contexts[i]);
	r->started = false;
}

void destroy(struct record *r) NAMED("_ZN2at14RecordFunctionD1Ev");
void destroy(struct record *r)
{
	end(r);
}

void set_async(struct record *r) NAMED("_ZN2at14RecordFunction9_setAsyncEv");
void set_async(struct record *r)
{
	r->is_async = !fault("async");
}

/* Operators as uprobes see them: a leaf, one that calls another twice, and one that calls back. */
void call_sinh(const void *nothing) NAMED("_ZN2at4_ops4sinh4callERKNS_6TensorE");
__attribute__((noinline)) void call_sinh(const void *nothing)
{
	volatile char room[16] = {0};

	(void)room[0];
}

void call_tanh(const void *nothing) NAMED("_ZN2at4_ops4tanh4callERKNS_6TensorE");
__attribute__((noinline)) void call_tanh(const void *nothing)
{
	volatile char room[16] = {0};

	call_sinh(nothing);
	call_sinh(nothing);
	(void)room[0];
}

void call_cosh(void (*hook)(void)) NAMED("_ZN2at4_ops4cosh4callERKNS_6TensorE");
__attribute__((noinline)) void call_cosh(void (*hook)(void))
{
	volatile char room[16] = {0};

	call_sinh(NULL);
	hook();
	call_sinh(NULL);
	(void)room[0];
}

/* ---- for the tests to call ---- */
void fake_begin(unsigned at, const char *name, int scope, long long sequence_nr);
void fake_begin(unsigned at, const char *name, int scope, long long sequence_nr)
{
	construct(&records[at], (uint8_t)scope);
	before(&records[at], name, sequence_nr);
}

void fake_end(unsigned at);
void fake_end(unsigned at)
{
	end(&records[at]);
}

/* Makes the next addition of a callback take `ms`, counted from when the other thread has seen it
 * begin. */
void fake_slow(unsigned ms);
void fake_slow(unsigned ms)
{
	slow_ms = ms;
}

int fake_changing(void);
int fake_changing(void)
{
	if (!__atomic_load_n(&changing, __ATOMIC_ACQUIRE))
		return 0;
	__atomic_store_n(&change_seen, true, __ATOMIC_RELEASE);
	return 1;
}

/* The number of registered callbacks. */
int fake_callbacks(void);
int fake_callbacks(void)
{
	int nr = 0;

	for (int i = 0; i < CALLBACKS_MAX; i++)
		nr += entries[i].handle != 0;
	return nr;
}
