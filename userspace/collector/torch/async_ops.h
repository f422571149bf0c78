/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Annotations and TorchScript functions that are open, in any thread: they may end on another
 * thread than they began on (collectives, futures). Operators cannot, so they are not in here. A
 * fixed table; one that finds no place in it is not told, for its end would not be known.
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

/* Puts the op into the table and its place into op->pending. False: there is none. */
bool async_ops__add(struct open_op *op, uint32_t tid, uint32_t torch_thread);
/* Whether it still is there: false once another thread has ended it. */
bool async_ops__holds(const struct open_op *op);
/* Whether it was there and another thread has ended it. */
bool async_ops__has_ended(const struct open_op *op);
/* How many of the first `nr` have not ended so. */
uint32_t async_ops__open_nr(const struct open_op *ops, uint32_t nr);
/* Takes it out; false if another thread was first. */
bool async_ops__take(const struct open_op *op);
/* Takes out whatever belongs to this record. */
bool async_ops__take_record(const void *record, struct async_op *ret_op);
/* Only while no callback can run. */
void async_ops__clear(void);

#endif /* GP_COLLECTOR_TORCH_ASYNC_OPS_H */
