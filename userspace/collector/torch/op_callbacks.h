/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * The callbacks that PyTorch calls as an op begins and ends, on every thread of the process.
 * PyTorch copies their addresses into each record it makes, so a callback may come long after it
 * was removed from the list: it finds the gate shut and does nothing. The library is linked so that
 * it is never unloaded.
 */
#ifndef GP_COLLECTOR_TORCH_OP_CALLBACKS_H
#define GP_COLLECTOR_TORCH_OP_CALLBACKS_H

#include "collector/torch/ops_session.h"

/* One of PyTorch's scopes (enum gp_scope) and its pair of callbacks. */
struct op_callback {
	torch_start_fn start;
	torch_end_fn end;
	uint8_t scope;
};

extern const struct op_callback op_callbacks[OPS_CALLBACKS_NR]
	__attribute__((visibility("hidden")));

#endif /* GP_COLLECTOR_TORCH_OP_CALLBACKS_H */
