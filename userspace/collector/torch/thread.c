/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A list of thread states that only grows. A thread finds its state through a pthread key, and the
 * state is reused when the thread ends. This is the only place of the callback path that allocates,
 * once per thread.
 */
#include "collector/torch/thread.h"

#include "collector/python/stack_cache.h"
#include "collector/runtime/compat.h"
#include "collector/torch/async_ops.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STATES_MAX  65536
#define NUMBER_MASK 0xfffffU

static pthread_key_t key;
static bool key_made;
static struct thread_state *first;
static uint32_t states_nr;
static uint32_t last_number;
static uint64_t abandoned;
static uintptr_t main_stack_end; /* 0: not known */

static void thread_ends(void *arg)
{
	struct thread_state *t = arg;

	uint32_t open_nr =
		async_ops__open_nr(t->open, __atomic_exchange_n(&t->depth, 0, __ATOMIC_RELAXED));

	(void)__atomic_fetch_add(&abandoned, open_nr, __ATOMIC_RELAXED);
	t->epoch = 0;
	stack_cache__give_back(t->top);
	__atomic_store_n(&t->in_use, 0, __ATOMIC_RELEASE);
}

/* A symbol of glibc. Without it the main thread's stack is never known. */
static void find_main_stack(void)
{
	void *const *end = dlsym(RTLD_DEFAULT, "__libc_stack_end");

	main_stack_end = end ? (uintptr_t)*end : 0;
}

/* A thread's descriptor (pthread_self()) lies at the end of its stack, except for the main thread.
 */
bool thread_is_on_stack(const void *p)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);
	uintptr_t end = (uintptr_t)pthread_self();

	if (end < here)
		end = main_stack_end;
	return (uintptr_t)p > here && (uintptr_t)p < end;
}

int thread_states__init(void)
{
	int err = key_made ? 0 : -pthread_key_create(&key, thread_ends);

	key_made = !err;
	find_main_stack();
	return err;
}

struct thread_state *thread_states__first(void)
{
	return __atomic_load_n(&first, __ATOMIC_ACQUIRE);
}

void thread_state__renumber(struct thread_state *t)
{
	do {
		t->number = __atomic_add_fetch(&last_number, 1, __ATOMIC_RELAXED) & NUMBER_MASK;
	} while (!t->number);
	t->ops_nr = 0;
}

static struct thread_state *reuse(void)
{
	for (struct thread_state *t = thread_states__first(); t; t = t->next) {
		uint32_t free_one = 0;

		if (__atomic_compare_exchange_n(&t->in_use, &free_one, 1, false, __ATOMIC_ACQUIRE,
						__ATOMIC_RELAXED))
			return t;
	}
	return NULL;
}

static struct thread_state *make(void)
{
	struct thread_state *t;

	if (__atomic_fetch_add(&states_nr, 1, __ATOMIC_RELAXED) >= STATES_MAX)
		return NULL;
	t = mmap(NULL, sizeof(*t), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (t == MAP_FAILED)
		return NULL;
	t->in_use = 1;
	thread_state__renumber(t);
	t->next = thread_states__first();
	while (!__atomic_compare_exchange_n(&first, &t->next, t, true, __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED))
		;
	return t;
}

static __attribute__((noinline)) struct thread_state *claim(void)
{
	int saved = errno;
	struct thread_state *t = reuse();

	if (!t)
		t = make();
	if (t && pthread_setspecific(key, t)) {
		__atomic_store_n(&t->in_use, 0, __ATOMIC_RELEASE);
		t = NULL;
	}
	if (t)
		t->tid = (uint32_t)syscall(SYS_gettid);
	errno = saved;
	return t;
}

struct thread_state *thread_state__get(void)
{
	struct thread_state *t = pthread_getspecific(key);

	return __builtin_expect(t != NULL, 1) ? t : claim();
}

/* Compares content, too: the text may lie in the record, or where a freed text lay. */
static bool is_cached(const struct cached_name *c, const char *text)
{
	return c->pointer == text && !strncmp(text, c->name->text, NAMES_TEXT_BYTES);
}

uint32_t thread_state__name_id(struct thread_state *t, struct names *names, struct ring_writer *w,
			       const char *text)
{
	/* Mixed, because texts lie in objects of one size and so share some bits of their address.
	 */
	uint64_t mixed = (uint64_t)(uintptr_t)text * 0x9e3779b97f4a7c15ULL;
	struct cached_name *place = t->names[mixed >> 32 & (THREAD_NAMES - 1)];
	const struct name *name;

	for (int i = 0; i < PLACE_NAMES; i++)
		if (__builtin_expect(is_cached(&place[i], text), 1))
			return place[i].name->id;
	name = names__get(names, w, text);
	if (!name)
		return 0;
	place[1] = place[0];
	place[0] = (struct cached_name){text, name};
	return name->id;
}

void thread_state__cache_stack(const struct thread_state *t)
{
	const struct open_op *op = t->depth ? &t->open[t->depth - 1] : NULL;
	struct gp_stack_top top;

	if (!t->top)
		return;
	if (!op || !op->stack.interp || op->stack.flags || (op->stack.frame && !op->stack.id) ||
	    !thread_is_on_stack(op->record)) {
		stack_cache__put(t->top, NULL);
		return;
	}
	top = (struct gp_stack_top){
		.state = op->stack.state,
		.interp = op->stack.interp,
		.frame = op->stack.frame,
		.record = (uint64_t)(uintptr_t)op->record,
		.stack_id = op->stack.id,
	};
	stack_cache__put(t->top, &top);
}

uint64_t thread_states__take_abandoned(void)
{
	return __atomic_exchange_n(&abandoned, 0, __ATOMIC_RELAXED);
}

void thread_states__forget(void)
{
	for (struct thread_state *t = thread_states__first(); t; t = t->next) {
		t->busy = 0;
		t->depth = 0;
		t->epoch = 0;
		t->in_use = 0;
	}
	if (key_made)
		(void)pthread_setspecific(key, NULL);
}
