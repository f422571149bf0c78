/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/*
 * Where the tensors are stored that an op is called with (struct gp_ev_tensors): addresses and
 * sizes only, no content.
 */
#ifndef GP_COLLECTOR_TORCH_TENSORS_H
#define GP_COLLECTOR_TORCH_TENSORS_H

#include "collector/runtime/ring_writer.h"
#include "collector/torch/layout.h"

/* Writes the storages of the inputs of the op that begins with `record`. Call it only in the
 * record's start callback. `head` becomes the head of each event. */
void tensors_write(const struct torch_layout *l, struct ring_writer *w, const void *record,
		   const struct gp_ev_head *head, uint64_t instance);

#endif /* GP_COLLECTOR_TORCH_TENSORS_H */
