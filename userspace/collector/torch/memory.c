/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The wrappers, and how they get in. A wrapper writes an event, then jumps to the real function
 * with all arguments as they came. So no frame of ours is on the stack while that runs, and its
 * exceptions cross no frame of ours. A thread may still be in a wrapper long after the wrapper was
 * taken out. It then finds the gate or `memory` shut and writes nothing. This library is never
 * unloaded.
 */
#include "collector/torch/memory.h"

#include "collector/runtime/compat.h"
#include "collector/runtime/fork_guard.h"
#include "collector/runtime/libraries.h"
#include "collector/runtime/plt_slots.h"
#include "collector/runtime/symbol.h"
#include "collector/torch/ops_session.h"

#include <dlfcn.h>
#include <limits.h>
#include <string.h>

#ifdef __x86_64__

/* Frees are hooked first and unhooked last: a free without its allocation is recognized as such,
 * but an allocation without its free would look like a leak. */
enum { FREES = 0, ALLOCATIONS = 1, SLOTS_NR = 2 };

static struct {
	void *library; /* held while hooked; for good if somebody else has changed a word */
	struct slot slots[SLOTS_NR];
	bool hooked;
} hook;

/* The functions that the wrappers jump to: set before the wrappers are in, and never cleared. */
static uintptr_t real_new __attribute__((used));
static uintptr_t real_delete __attribute__((used));

/* ---- the wrappers ---- */

/* The stack of an allocation: that of the innermost op if its Python frame is the same, else by a
 * walk. */
static uint32_t stack_id(struct session *s, struct thread_state *t)
{
	const struct open_op *op = t->depth ? &t->open[t->depth - 1] : NULL;
	const struct op_stack *outer = op && thread_is_on_stack(op->record) ? &op->stack : NULL;

	return stacks__take(s->stacks, s->ring, &t->stack, outer, NULL).id;
}

static void emit(uint8_t flags, const void *address, size_t bytes)
{
	struct thread_state *t;
	struct session *s = ops_enter(&t, true);
	struct gp_ev_memory ev = {
		.head = {.kind = GP_EV_MEMORY, .flags = flags},
		.address = (uint64_t)(uintptr_t)address,
		.bytes = (int64_t)bytes,
		.device_type = GP_DEVICE_CPU,
		.device_index = -1,
	};

	if (!s)
		return;
	if (__atomic_load_n(&s->memory, __ATOMIC_RELAXED)) {
		uint64_t begin_ns = ops_time_begin(t);

		if (__builtin_expect(t->epoch != s->epoch, 0))
			ops_begin_epoch(s, t);
		ev.head.tid = t->tid;
		ev.head.time_ns = clock_now_ns();
		if (s->caches_stacks && !(flags & GP_MEMORY_FREE))
			ev.stack_id = stack_id(s, t);
		(void)ring_writer__write(s->ring, &ev, sizeof(ev));
		ops_time_end(s, begin_ns);
	}
	ops_leave(t);
}

/* Runs before void c10::ProfiledCPUMemoryReporter::New(void *ptr, size_t nbytes). */
static __attribute__((used)) void before_new(const void *reporter, const void *address,
					     size_t bytes)
{
	if (bytes)
		emit(0, address, bytes);
}

/* Runs before void c10::ProfiledCPUMemoryReporter::Delete(void *ptr). Only that knows the size. */
static __attribute__((used)) void before_delete(const void *reporter, const void *address)
{
	if (address)
		emit(GP_MEMORY_FREE | GP_MEMORY_SIZE_UNKNOWN, address, 0);
}

/* Keeps the arguments, and aligns the stack pointer as the ABI wants it at a call. */
#define WRAPPER(name, before, real)                                                                \
	__asm__(".pushsection .text\n"                                                             \
		".type " #name ", @function\n" #name ":\n"                                         \
		".cfi_startproc\n"                                                                 \
		"endbr64\n"                                                                        \
		"push %rdi\n.cfi_adjust_cfa_offset 8\n"                                            \
		"push %rsi\n.cfi_adjust_cfa_offset 8\n"                                            \
		"push %rdx\n.cfi_adjust_cfa_offset 8\n"                                            \
		"call " #before "\n"                                                               \
		"pop %rdx\n.cfi_adjust_cfa_offset -8\n"                                            \
		"pop %rsi\n.cfi_adjust_cfa_offset -8\n"                                            \
		"pop %rdi\n.cfi_adjust_cfa_offset -8\n"                                            \
		"jmp *" #real "(%rip)\n"                                                           \
		".cfi_endproc\n"                                                                   \
		".size " #name ", .-" #name "\n"                                                   \
		".popsection")

/* Labels for the linker: never called from C. */
extern const char wrapper_new[] __attribute__((visibility("hidden")));
extern const char wrapper_delete[] __attribute__((visibility("hidden")));
WRAPPER(wrapper_new, before_new, real_new);
WRAPPER(wrapper_delete, before_delete, real_delete);

static uintptr_t wrapper(int i)
{
	return (uintptr_t)(i == ALLOCATIONS ? wrapper_new : wrapper_delete);
}

/* ---- in and out ---- */

static int find_library(struct dl_phdr_info *info, size_t bytes, void *arg)
{
	static const char prefix[] = "libc10.so";
	const char *slash = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;
	char *path = arg;

	if (!slash || strncmp(slash + 1, prefix, sizeof(prefix) - 1) ||
	    strlen(info->dlpi_name) >= PATH_MAX)
		return 0;
	memcpy(path, info->dlpi_name, strlen(info->dlpi_name) + 1);
	return 1;
}

static void let_go(void)
{
	if (hook.library)
		(void)dlclose(hook.library);
	hook.library = NULL;
}

/* Holds the library and finds the words to change. NULL, or why not. */
static const char *find(void)
{
	static char path[PATH_MAX];
	const struct link_map *map;

	hook.slots[FREES] = (struct slot){.name = "_ZN3c1025ProfiledCPUMemoryReporter6DeleteEPv"};
	hook.slots[ALLOCATIONS] =
		(struct slot){.name = "_ZN3c1025ProfiledCPUMemoryReporter3NewEPvm"};
	if (!libraries__each(find_library, path))
		return "memory: no libc10 in this process";
	hook.library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
	if (!hook.library || dlinfo(hook.library, RTLD_DI_LINKMAP, &map))
		return "memory: libc10 has gone";
	for (int i = 0; i < SLOTS_NR; i++)
		if (!symbol_find(hook.library, hook.slots[i].name, &hook.slots[i].function))
			return "memory: this PyTorch does not report CPU memory as expected";
	if (!slots_find(map->l_addr, hook.slots, SLOTS_NR))
		return "memory: libc10's own calls do not go through its table as expected";
	return NULL;
}

static bool is_in(void)
{
	for (int i = 0; i < SLOTS_NR; i++)
		if (__atomic_load_n(hook.slots[i].word, __ATOMIC_RELAXED) != wrapper(i))
			return false;
	return true;
}

static const char *put_in(void)
{
	real_new = hook.slots[ALLOCATIONS].function;
	real_delete = hook.slots[FREES].function;
	hook.hooked = true;
	for (int i = 0; i < SLOTS_NR; i++)
		if (!slot_set(&hook.slots[i], hook.slots[i].function, wrapper(i)))
			return "memory: libc10's table cannot be written";
	return NULL;
}

const char *memory__hook(void)
{
	const char *why;

	if (hook.hooked)
		return is_in() ? NULL : "memory: somebody else wraps libc10's calls too";
	if (hook.library)
		return "memory: somebody else wraps libc10's calls";
	/* A fork's child must find both in or neither, and the loader's lock free. */
	fork_guard__hold();
	why = find() ?: put_in();
	fork_guard__release();
	if (!why)
		return NULL;
	if (hook.hooked)
		memory__unhook();
	else
		let_go();
	return why;
}

/* Takes the wrappers out. True: no word leads to us any more. */
static bool take_out(void)
{
	bool all = true;

	for (int i = SLOTS_NR - 1; i >= 0; i--) {
		const struct slot *s = &hook.slots[i];

		all &= slot_set(s, wrapper(i), s->function) ||
		       __atomic_load_n(s->word, __ATOMIC_RELAXED) == s->function;
	}
	hook.hooked = false;
	return all;
}

void memory__unhook(void)
{
	bool all;

	if (!hook.hooked)
		return;
	fork_guard__hold();
	all = take_out();
	fork_guard__release();
	/* Otherwise whoever has changed a word may still call our wrapper, and through it the
	 * library. */
	if (all)
		let_go();
}

void memory__forget(void)
{
	/* The library's handle stays open: the loader's lock may be held at this moment. */
	if (hook.hooked && take_out())
		hook.library = NULL;
}

#else

const char *memory__hook(void)
{
	return "memory: not built for this processor yet";
}

void memory__unhook(void)
{
}

void memory__forget(void)
{
}

#endif
