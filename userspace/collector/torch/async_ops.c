/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * A place's `instance` is 0 while it is free, CHANGING while its content is being written or read,
 * and otherwise the op's instance, which is never reused.
 */
#include "collector/torch/async_ops.h"

#include "collector/runtime/compat.h"

#include <string.h>

#define PLACES	 1024
#define CHANGING UINT64_MAX

struct place {
	uint64_t instance;
	const void *record;
	struct async_op content;
};

static struct place places[PLACES];
static uint32_t used_nr; /* places at and beyond this were never used: a bound for searches */

bool async_ops__add(struct open_op *op, uint32_t tid, uint32_t torch_thread)
{
	for (uint32_t i = 0; i < PLACES; i++) {
		struct place *p = &places[i];
		uint64_t nobody = 0;
		uint32_t used;

		if (!__atomic_compare_exchange_n(&p->instance, &nobody, CHANGING, false,
						 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			continue;
		op->async_place = (uint16_t)i;
		p->content = (struct async_op){*op, tid, torch_thread};
		__atomic_store_n(&p->record, op->record, __ATOMIC_RELAXED);
		__atomic_store_n(&p->instance, op->instance, __ATOMIC_RELEASE);
		used = __atomic_load_n(&used_nr, __ATOMIC_RELAXED);
		while (used < i + 1 &&
		       !__atomic_compare_exchange_n(&used_nr, &used, i + 1, true, __ATOMIC_RELEASE,
						    __ATOMIC_RELAXED))
			;
		return true;
	}
	return false;
}

bool async_ops__holds(const struct open_op *op)
{
	return __atomic_load_n(&places[op->async_place].instance, __ATOMIC_RELAXED) == op->instance;
}

bool async_ops__has_ended(const struct open_op *op)
{
	return op->async_place != NOT_ASYNC && !async_ops__holds(op);
}

uint32_t async_ops__open_nr(const struct open_op *ops, uint32_t nr)
{
	uint32_t open_nr = 0;

	for (uint32_t i = 0; i < nr; i++)
		open_nr += !async_ops__has_ended(&ops[i]);
	return open_nr;
}

static bool take(struct place *p, uint64_t instance, struct async_op *ret_op)
{
	if (!__atomic_compare_exchange_n(&p->instance, &instance, CHANGING, false, __ATOMIC_ACQUIRE,
					 __ATOMIC_RELAXED))
		return false;
	if (ret_op)
		*ret_op = p->content;
	__atomic_store_n(&p->record, NULL, __ATOMIC_RELAXED);
	__atomic_store_n(&p->instance, 0, __ATOMIC_RELEASE);
	return true;
}

bool async_ops__take(const struct open_op *op)
{
	return take(&places[op->async_place], op->instance, NULL);
}

bool async_ops__take_record(const void *record, struct async_op *ret_op)
{
	uint32_t used = __atomic_load_n(&used_nr, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < used; i++) {
		struct place *p = &places[i];
		uint64_t instance = __atomic_load_n(&p->instance, __ATOMIC_ACQUIRE);

		if (!instance || instance == CHANGING ||
		    __atomic_load_n(&p->record, __ATOMIC_RELAXED) != record)
			continue;
		if (take(p, instance, ret_op))
			return true;
	}
	return false;
}

void async_ops__clear(void)
{
	memset(places, 0, used_nr * sizeof(places[0]));
	used_nr = 0;
}
