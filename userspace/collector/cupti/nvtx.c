/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * NVTX is a header. Whoever includes it (PyTorch from 2.6 on) has functions of its own that do
 * nothing; at their first call they ask the library in NVTX_INJECTION64_PATH for replacements. Ours
 * do nothing either, but gpuprof's uprobes sit on them, as they sit in libnvToolsExt. They stay
 * when gpuprof has gone, and cost a call.
 *
 * The numbers are those of NVTX 3's tables for tools, which only ever grow. Ranges of domains,
 * which need not nest, and ranges that end on another thread are left out.
 */
#include "collector/runtime/compat.h"

#include <stddef.h>
#include <stdint.h>

#define PUBLIC __attribute__((visibility("default")))

#define TABLE_CALLBACKS 1
#define MODULE_CORE	1
#define NOT_TRACKED	(-2) /* the depth that NVTX returns without a tool */
#define NAME_BYTES	128

enum core { CORE_PUSH_EX = 8, CORE_PUSH_A = 9, CORE_PUSH_W = 10, CORE_POP = 11 };
enum message { MESSAGE_ASCII = 1, MESSAGE_UNICODE = 2 };

typedef void (*function)(void);

struct callbacks {
	size_t struct_bytes;
	/* Returns where the function pointers lie. 0: failure. */
	int (*get_functions)(uint32_t module, function ***ret_places, unsigned *ret_nr);
};

/* The beginning of nvtxEventAttributes_t. */
struct attributes {
	uint16_t version;
	uint16_t bytes;
	uint32_t category;
	int32_t color_type;
	uint32_t color;
	int32_t payload_type;
	int32_t reserved0;
	uint64_t payload;
	int32_t message_type; /* enum message or another */
	int32_t pad;
	const void *message;
};

PUBLIC int InitializeInjectionNvtx2(const void *(*get_table)(uint32_t id));
PUBLIC int gpuprof_nvtx_push(const char *name);
PUBLIC int gpuprof_nvtx_pop(void);

__attribute__((noinline)) int gpuprof_nvtx_push(const char *name)
{
	__asm__ volatile("" : : "r"(name) : "memory");
	return NOT_TRACKED;
}

__attribute__((noinline)) int gpuprof_nvtx_pop(void)
{
	__asm__ volatile("" : : : "memory");
	return NOT_TRACKED;
}

static int push_wide(const int32_t *name)
{
	char text[NAME_BYTES];
	size_t nr = 0;

	for (; name && name[nr] && nr < sizeof(text) - 1; nr++)
		text[nr] = name[nr] > 0 && name[nr] < 128 ? (char)name[nr] : '?';
	text[nr] = '\0';
	return gpuprof_nvtx_push(text);
}

static int push_attributes(const struct attributes *a)
{
	if (!a || a->bytes < sizeof(*a) || !a->message)
		return gpuprof_nvtx_push("");
	if (a->message_type == MESSAGE_UNICODE)
		return push_wide(a->message);
	return gpuprof_nvtx_push(a->message_type == MESSAGE_ASCII ? a->message : "");
}

int InitializeInjectionNvtx2(const void *(*get_table)(uint32_t id))
{
	const struct callbacks *callbacks = get_table ? get_table(TABLE_CALLBACKS) : NULL;
	function **places = NULL;
	unsigned nr = 0;

	if (!callbacks || callbacks->struct_bytes < sizeof(*callbacks) ||
	    !callbacks->get_functions(MODULE_CORE, &places, &nr) || !places || nr <= CORE_POP)
		return 0;
	*places[CORE_PUSH_EX] = (function)push_attributes;
	*places[CORE_PUSH_A] = (function)gpuprof_nvtx_push;
	*places[CORE_PUSH_W] = (function)push_wide;
	*places[CORE_POP] = (function)gpuprof_nvtx_pop;
	return 1;
}
