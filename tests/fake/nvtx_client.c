/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A library that includes NVTX 3's header: pointers that it requests once, at the first call, from
 * the library in the environment, and functions of its own that call them, which only its symbol
 * table names, as GCC or Clang compile it. nvtx_client_...() are the library's ways to those; the
 * long form is inlined, so that nothing names it.
 */
#include "fake/fake_gpu.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

#define TABLE_CALLBACKS 1
#define MODULE_CORE	1
#define CORE_FUNCTIONS	16
#define CORE_PUSH_EX	8
#define CORE_PUSH_A	9
#define CORE_POP	11
#define MESSAGE_ASCII	1
#define NO_TOOL		(-2)

FAKE_GPU_PUBLIC int nvtx_client_push(const char *text);
FAKE_GPU_PUBLIC int nvtx_client_push_clang(const char *text);
FAKE_GPU_PUBLIC int nvtx_client_push_long(const char *text);
FAKE_GPU_PUBLIC int nvtx_client_pop(void);
FAKE_GPU_PUBLIC int nvtx_client_pop_clang(void);
FAKE_GPU_PUBLIC int nvtx_client_pop_long(void);

static int nvtxRangePushA(const char *text);
static int nvtxRangePop(void);
static int clang_push(const char *text) __asm__("_ZL14nvtxRangePushAPKc");
static int clang_pop(void) __asm__("_ZL12nvtxRangePopv");

typedef void (*function)(void);

struct attributes {
	uint16_t version, bytes;
	uint32_t category;
	int32_t color_type;
	uint32_t color;
	int32_t payload_type, reserved0;
	uint64_t payload;
	int32_t message_type;
	const char *message;
};

static function functions[CORE_FUNCTIONS];
static function *places[CORE_FUNCTIONS + 1];

static int get_functions(uint32_t module, function ***ret_places, unsigned *ret_nr)
{
	if (module != MODULE_CORE)
		return 0;
	for (int i = 1; i < CORE_FUNCTIONS; i++)
		places[i] = &functions[i];
	*ret_places = places;
	*ret_nr = CORE_FUNCTIONS;
	return 1;
}

static const void *get_table(uint32_t id)
{
	static const struct {
		size_t bytes;
		int (*get_functions)(uint32_t module, function ***ret_places, unsigned *ret_nr);
	} callbacks = {sizeof(callbacks), get_functions};

	return id == TABLE_CALLBACKS ? &callbacks : NULL;
}

static void ask(void)
{
	const char *path = getenv("NVTX_INJECTION64_PATH");
	void *handle = path ? dlopen(path, RTLD_LAZY) : NULL;
	int (*initialize)(const void *(*table)(uint32_t id)) = NULL;

	if (handle)
		*(void **)&initialize = dlsym(handle, "InitializeInjectionNvtx2");
	if (initialize)
		(void)initialize(get_table);
}

static function function_of(int core)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, ask);
	return functions[core];
}

static inline int push(const char *text)
{
	int (*tool)(const char *text) = (int (*)(const char *text))function_of(CORE_PUSH_A);

	return tool ? tool(text) : NO_TOOL;
}

static inline int pop(void)
{
	int (*tool)(void) = (int (*)(void))function_of(CORE_POP);

	return tool ? tool() : NO_TOOL;
}

static int nvtxRangePushA(const char *text)
{
	return push(text);
}

static int nvtxRangePop(void)
{
	return pop();
}

/* Something in them, lest they become a jump to those above, which are the same. */

static int clang_push(const char *text)
{
	__asm__ volatile("");
	return push(text);
}

static int clang_pop(void)
{
	__asm__ volatile("");
	return pop();
}

/* Whoever binds them to another language keeps their addresses, so each has code of its own. */
static int (*volatile const pushes[])(const char *text) = {nvtxRangePushA, clang_push};
static int (*volatile const pops[])(void) = {nvtxRangePop, clang_pop};

int nvtx_client_push(const char *text)
{
	return pushes[0](text);
}

int nvtx_client_pop(void)
{
	return pops[0]();
}

int nvtx_client_push_clang(const char *text)
{
	return pushes[1](text);
}

int nvtx_client_pop_clang(void)
{
	return pops[1]();
}

int nvtx_client_push_long(const char *text)
{
	struct attributes a = {
		.version = 3, .bytes = sizeof(a), .message_type = MESSAGE_ASCII, .message = text};
	int (*tool)(const struct attributes *a) =
		(int (*)(const struct attributes *a))function_of(CORE_PUSH_EX);

	return tool ? tool(&a) : NO_TOOL;
}

int nvtx_client_pop_long(void)
{
	return pop();
}
