/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The Python side of an op that begins: its stack, and the module calls and Python calls that it is
 * in.
 */
#ifndef GP_COLLECTOR_TORCH_OP_PYTHON_H
#define GP_COLLECTOR_TORCH_OP_PYTHON_H

#include "collector/torch/thread.h"

/* Sets `stack`, `modules_nr`, `calls_nr` and `same_calls` of the op that begins as
 * t->open[t->depth]. `names` NULL: modules are not wanted. */
void op_python__take(struct stacks *k, struct ring_writer *w, struct thread_state *t,
		     struct names *names);

#endif /* GP_COLLECTOR_TORCH_OP_PYTHON_H */
