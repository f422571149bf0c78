/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The table is never unmapped: gpuprof may read it until it has heard that it is no longer filled.
 */
#include "collector/python/stack_cache.h"

#include "collector/runtime/compat.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#define BYTES (GP_STACK_TOPS * sizeof(struct gp_stack_top))

static struct gp_stack_top *table;

int stack_cache__init(void)
{
	void *p;

	if (table)
		return 0;
	p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return -errno;
	if (madvise(p, BYTES, MADV_WIPEONFORK)) {
		int err = -errno;

		(void)munmap(p, BYTES);
		return err;
	}
	table = p;
	return 0;
}

uint64_t stack_cache__address(void)
{
	return (uint64_t)(uintptr_t)table;
}

struct gp_stack_top *stack_cache__claim(void)
{
	uint64_t self = (uint64_t)(uintptr_t)pthread_self();
	struct gp_stack_top *top;
	__u64 owner = 0;

	if (!table)
		return NULL;
	top = &table[gp_stack_top_place(self)];
	if (!__atomic_compare_exchange_n(&top->self, &owner, self, false, __ATOMIC_RELAXED,
					 __ATOMIC_RELAXED) &&
	    owner != self)
		return NULL;
	stack_cache__put(top, NULL);
	return top;
}

void stack_cache__give_back(struct gp_stack_top *top)
{
	if (!top || top->self != (uint64_t)(uintptr_t)pthread_self())
		return;
	stack_cache__put(top, NULL);
	__atomic_store_n(&top->self, 0, __ATOMIC_RELEASE);
}

void stack_cache__clear(void)
{
	if (table)
		memset(table, 0, BYTES);
}

void stack_cache__put(struct gp_stack_top *top, const struct gp_stack_top *as)
{
	if (!top)
		return;
	/* Invalid until all of it is written. */
	__atomic_store_n(&top->state, 0, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (!as)
		return;
	top->interp = as->interp;
	top->frame = as->frame;
	top->record = as->record;
	top->stack_id = as->stack_id;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	__atomic_store_n(&top->state, as->state, __ATOMIC_RELAXED);
}
