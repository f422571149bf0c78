/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Open annotations and TorchScript functions of all threads. They may end on another thread than
 * they began on (collectives, futures); operators cannot, so they are not in here. The table is
 * fixed. If it is full, the op is dropped, because its end could not be matched.
 */
#ifndef GP_COLLECTOR_TORCH_ASYNC_OPS_H
#define GP_COLLECTOR_TORCH_ASYNC_OPS_H

#include "collector/torch/thread.h"

#include <stdbool.h>

struct async_op {
	struct open_op op;
	uint32_t tid;
	uint32_t torch_thread;
};

/* Adds the op to the table and sets op->async_place. False: the table is full. */
bool async_ops__add(struct open_op *op, uint32_t tid, uint32_t torch_thread);
/* Whether it is still in the table: false once another thread has ended it. */
bool async_ops__holds(const struct open_op *op);
/* Whether it was in the table and another thread has ended it. */
bool async_ops__has_ended(const struct open_op *op);
/* The number of ops among the first `nr` that no other thread has ended. */
uint32_t async_ops__open_nr(const struct open_op *ops, uint32_t nr);
/* Removes it. False if another thread was first. */
bool async_ops__take(const struct open_op *op);
/* Finds the op of this record, copies it and removes it. False: there is none. */
bool async_ops__take_record(const void *record, struct async_op *ret_op);
/* Removes all. Only while no callback can run. */
void async_ops__clear(void);

#endif /* GP_COLLECTOR_TORCH_ASYNC_OPS_H */
